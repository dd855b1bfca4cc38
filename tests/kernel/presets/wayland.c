#include <sys/socket.h>
#include <wayland-client.h>
#include "mode.h"

int main(int argc, char **argv)
{
	struct wl_event_queue *queue;
	struct wl_display *display;
	int pair[2];

	read_mode(argc, argv);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	display = wl_display_connect_to_fd(pair[0]);
	for (int i = 0; i < 3; i++) {
		queue = wl_display_create_queue(display);
		if (!leaks || i)
			wl_event_queue_destroy(queue);
	}
	wl_display_disconnect(display);
	if (overputs)
		wl_display_disconnect(display);
	return 0;
}
