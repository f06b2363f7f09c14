// SPDX-License-Identifier: GPL-2.0-or-later
#include "daemon/store/restrict.h"
#include "common/util.h"

#include <errno.h>
#include <sys/syscall.h>

/* liburing 2.3 declares both calls and does not export them. */
static int do_register(const struct io_uring *u, unsigned opcode, const void *arg, unsigned n)
{
	return syscall(SYS_io_uring_register, u->ring_fd, opcode, arg, n) < 0 ? -errno : 0;
}

int restrict_enable(struct io_uring *u, const struct restrict_lists *lists)
{
	struct io_uring_restriction list[RESTRICT_MAX + 1] = {
		/* A registered file instead of a descriptor, and no other flag. */
		{.opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED, .sqe_flags = IOSQE_FIXED_FILE}};
	unsigned n = 1;
	int r;

	z_assert(lists->nops + lists->nregisters <= RESTRICT_MAX);
	for (size_t i = 0; i < lists->nops; i++)
		list[n++] = (struct io_uring_restriction){.opcode = IORING_RESTRICTION_SQE_OP,
							  .sqe_op = lists->ops[i]};
	for (size_t i = 0; i < lists->nregisters; i++)
		list[n++] = (struct io_uring_restriction){.opcode = IORING_RESTRICTION_REGISTER_OP,
							  .register_op = lists->registers[i]};
	r = do_register(u, IORING_REGISTER_RESTRICTIONS, list, n);
	return r < 0 ? r : do_register(u, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}
