#include <sqlite3.h>
#include "mode.h"

int main(int argc, char **argv)
{
	sqlite3 *db, *none;
	sqlite3_stmt *statement;

	read_mode(argc, argv);
	sqlite3_open(":memory:", &db);
	sqlite3_open_v2("/nonexistent/file", &none, SQLITE_OPEN_READONLY, 0);
	sqlite3_close(none);
	sqlite3_exec(db, "create table t(x); insert into t values(1); select * from t", 0, 0, 0);
	for (int i = 0; i < 7; i++) {
		sqlite3_prepare_v2(db, "select x from t", -1, &statement, 0);
		sqlite3_step(statement);
		if (!leaks || i >= 2)
			sqlite3_finalize(statement);
	}
	sqlite3_prepare_v2(db, "no such syntax", -1, &statement, 0);
	sqlite3_close(db);	/* busy if statements are left */
	if (overputs)
		sqlite3_close(db);
	return 0;
}
