// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Asks the kernel who waits for what, shortly before a guest's time is up.  It is locked in memory:
 * a shell would have to be swapped in, and may be one of those who wait.
 *
 * usage: guard SECONDS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	/* Blocked tasks, memory, backtraces of all CPUs; and again, to see what moves.
	 */
	static const char keys[] = {'w', 'm', 'l', 'w'};
	unsigned seconds = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
	int fd = open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC);

	if (!seconds || fd < 0 || mlockall(MCL_CURRENT | MCL_FUTURE) < 0) {
		fputs("usage: guard SECONDS (as root)\n", stderr);
		return 2;
	}
	while ((seconds = sleep(seconds)))
		;
	for (unsigned i = 0; i < sizeof(keys); i++) {
		if (write(fd, &keys[i], 1) != 1)
			return 1;
		sleep(1);
	}
	return 0;
}
