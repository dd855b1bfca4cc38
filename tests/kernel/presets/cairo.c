#include <cairo.h>
#include "mode.h"

int main(int argc, char **argv)
{
	cairo_surface_t *surface;
	cairo_t *context;
	cairo_pattern_t *pattern;

	read_mode(argc, argv);
	for (int i = 0; i < 3; i++) {
		surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 8, 8);
		context = cairo_create(surface);	/* refers to the surface */
		cairo_surface_destroy(surface);
		pattern = cairo_pattern_create_rgb(1, 0, 0);
		cairo_set_source(context, pattern);
		cairo_pattern_destroy(pattern);
		cairo_paint(context);
		if (!leaks || i)
			cairo_destroy(context);
	}
	surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 8, 8);
	cairo_surface_reference(surface);
	cairo_surface_destroy(surface);
	cairo_surface_destroy(surface);
	if (overputs)
		cairo_surface_destroy(surface);
	return 0;
}
