#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "mode.h"

int main(int argc, char **argv)
{
	int fd = -1, pair[2];

	read_mode(argc, argv);
	for (int i = 0; i < 5; i++) {
		fd = open("/dev/null", O_RDONLY);
		if (!leaks || i >= 2)
			close(fd);
	}
	open("/nonexistent/file", O_RDONLY);
	pipe(pair);
	dup2(pair[0], pair[1]);	/* closes the one end */
	close(pair[0]);
	close(pair[1]);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	close(pair[0]);
	if (!leaks)
		close(pair[1]);
	closedir(opendir("/"));
	fclose(fopen("/dev/null", "r"));
	fclose(fdopen(open("/dev/null", O_RDONLY), "r"));
	fd = dup(1);
	close(fd);
	if (overputs)
		close(fd);
	return 0;
}
