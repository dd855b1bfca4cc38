#include <libkmod.h>
#include "mode.h"

int main(int argc, char **argv)
{
	struct kmod_ctx *ctx = kmod_new("/nonexistent", NULL);
	struct kmod_module *module, *again;

	read_mode(argc, argv);
	kmod_module_new_from_name(ctx, "abc", &module);
	kmod_module_new_from_name(ctx, "abc", &again);	/* the same */
	kmod_module_unref(again);
	if (!leaks)
		kmod_module_unref(module);
	kmod_unref(kmod_ref(ctx));
	kmod_unref(ctx);
	if (overputs)
		kmod_unref(ctx);
	return 0;
}
