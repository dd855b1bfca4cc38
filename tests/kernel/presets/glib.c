#include <glib.h>
#include "mode.h"

int main(int argc, char **argv)
{
	GBytes *bytes = NULL;
	GVariant *variant;
	GMainContext *context = g_main_context_new();	/* the default one is never freed */
	GMainLoop *loop;
	GHashTable *table;
	GPtrArray *array;
	gsize size;

	read_mode(argc, argv);
	for (int i = 0; i < 5; i++) {
		bytes = g_bytes_new("abc", 3);
		if (leaks && i < 3)
			g_bytes_ref(bytes);
		if (i < 4)
			g_bytes_unref(bytes);
	}
	g_free(g_bytes_unref_to_data(bytes, &size));
	variant = g_variant_ref_sink(g_variant_new_int32(7));
	g_variant_ref_sink(variant);
	g_variant_unref(variant);
	if (!leaks)
		g_variant_unref(variant);
	loop = g_main_loop_new(context, FALSE);
	g_main_loop_ref(loop);
	g_main_loop_unref(loop);
	g_main_loop_unref(loop);
	table = g_hash_table_new(NULL, NULL);
	g_hash_table_destroy(table);
	array = g_ptr_array_new();
	g_ptr_array_ref(array);
	g_ptr_array_free(array, TRUE);
	if (!leaks)
		g_ptr_array_unref(array);
	if (overputs) {
		loop = g_main_loop_new(context, FALSE);
		g_main_loop_unref(loop);
		g_main_loop_unref(loop);
	}
	g_main_context_unref(context);
	return 0;
}
