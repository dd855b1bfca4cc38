#include <glib-object.h>
#include "mode.h"

typedef struct { GObject parent; GObject *child; } Widget;
typedef GObjectClass WidgetClass;
typedef GInitiallyUnowned Floater;
typedef GInitiallyUnownedClass FloaterClass;
G_DEFINE_TYPE(Floater, floater, G_TYPE_INITIALLY_UNOWNED)
static void floater_init(Floater *f) { (void)f; }
static void floater_class_init(FloaterClass *c) { (void)c; }
G_DEFINE_TYPE(Widget, widget, G_TYPE_OBJECT)
/* An object that makes another inside of its own making, and gives itself away for a moment. */
static void widget_init(Widget *w)
{
	w->child = g_object_new(floater_get_type(), NULL);
	g_object_ref_sink(w->child);
	g_object_ref(w);
	g_object_unref(w);
}
static void widget_dispose(GObject *object)
{
	g_object_ref(object);
	g_clear_object(&((Widget *)object)->child);
	g_object_unref(object);
	G_OBJECT_CLASS(widget_parent_class)->dispose(object);
}
static void widget_class_init(WidgetClass *c) { c->dispose = widget_dispose; }

int main(int argc, char **argv)
{
	GObject *w = NULL, *f;

	read_mode(argc, argv);
	for (int i = 0; i < 5; i++) {
		w = g_object_new(widget_get_type(), NULL);
		if (leaks && i < 2)
			g_object_ref(w);
		if (i < 4)
			g_object_unref(w);
	}
	f = g_object_ref_sink(g_object_new(floater_get_type(), NULL));
	g_object_ref_sink(f);	/* no longer floating: a get */
	g_object_unref(f);
	g_object_unref(f);
	g_object_unref(w);
	if (overputs)
		g_object_unref(w);
	return 0;
}
