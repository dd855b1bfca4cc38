#include <json-c/json.h>
#include "mode.h"

int main(int argc, char **argv)
{
	struct json_object *o = NULL, *child;

	read_mode(argc, argv);
	for (int i = 0; i < 5; i++) {
		o = json_object_new_object();
		child = json_object_new_int(i);
		json_object_object_add(o, "n", child);
		if (leaks && i < 2)
			json_object_get(child);
		if (i < 4)
			json_object_put(o);
	}
	json_object_put(json_tokener_parse("[1,{\"a\":\"b\"}]"));
	json_object_put(o);
	if (overputs)
		json_object_put(o);
	return 0;
}
