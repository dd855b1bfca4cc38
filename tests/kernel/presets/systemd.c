#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include "mode.h"

static int nothing(sd_event_source *s, void *data) { (void)s; (void)data; return 0; }

int main(int argc, char **argv)
{
	sd_event *event, *same;
	sd_event_source *source;
	sd_bus *bus;

	read_mode(argc, argv);
	sd_event_default(&event);
	sd_event_default(&same);
	sd_event_unref(same);
	sd_event_add_defer(event, &source, nothing, NULL);
	sd_event_source_unref(sd_event_source_ref(source));
	if (!leaks)
		sd_event_source_unref(source);
	sd_bus_new(&bus);
	sd_bus_unref(sd_bus_ref(bus));
	sd_bus_unref(bus);
	sd_event_unref(event);
	if (overputs)
		sd_bus_unref(bus);
	return 0;
}
