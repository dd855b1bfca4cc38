#include <libudev.h>
#include "mode.h"

int main(int argc, char **argv)
{
	struct udev *udev;
	struct udev_enumerate *list;
	struct udev_device *device;

	read_mode(argc, argv);
	udev = udev_new();
	list = udev_enumerate_new(udev);
	device = udev_device_new_from_subsystem_sysname(udev, "mem", "null");
	udev_device_unref(udev_device_ref(device));
	if (!leaks)
		udev_device_unref(device);
	udev_enumerate_unref(list);
	udev_unref(udev_ref(udev));
	udev_unref(udev);
	if (overputs)
		udev_unref(udev);
	return 0;
}
