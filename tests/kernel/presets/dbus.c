#include <dbus/dbus.h>
#include "mode.h"

int main(int argc, char **argv)
{
	DBusMessage *m = NULL;

	read_mode(argc, argv);
	for (int i = 0; i < 5; i++) {
		m = dbus_message_new_method_call("a.b", "/a", "a.b", "M");
		if (leaks && i < 2)
			dbus_message_ref(m);
		if (i < 4)
			dbus_message_unref(m);
	}
	dbus_message_unref(dbus_message_copy(m));
	dbus_message_unref(m);
	if (overputs)
		dbus_message_unref(m);
	return 0;
}
