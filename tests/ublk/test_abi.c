// SPDX-License-Identifier: GPL-2.0-or-later
/* The numbers on the wire, written out as the kernel's documentation gives them. */
#include "daemon/ublk/abi.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

static void encoded_opcodes(void **state)
{
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_GET_QUEUE_AFFINITY, true), 0x80207501);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_GET_DEV_INFO, true), 0x80207502);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_ADD_DEV, true), 0xc0207504);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_DEL_DEV, true), 0xc0207505);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_START_DEV, true), 0xc0207506);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_STOP_DEV, true), 0xc0207507);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_SET_PARAMS, true), 0xc0207508);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_START_USER_RECOVERY, true), 0xc0207510);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_END_USER_RECOVERY, true), 0xc0207511);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_GET_FEATURES, true), 0x80207513);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_DEL_DEV_ASYNC, true), 0x80207514);
	assert_int_equal(ublk_io_op(UBLK_IO_FETCH_REQ, true), 0xc0107520);
	assert_int_equal(ublk_io_op(UBLK_IO_COMMIT_AND_FETCH_REQ, true), 0xc0107521);
}

static void plain_opcodes(void **state)
{
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_GET_QUEUE_AFFINITY, false), 0x01);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_GET_DEV_INFO, false), 0x02);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_ADD_DEV, false), 0x04);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_DEL_DEV, false), 0x05);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_START_DEV, false), 0x06);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_STOP_DEV, false), 0x07);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_SET_PARAMS, false), 0x08);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_START_USER_RECOVERY, false), 0x10);
	assert_int_equal(ublk_ctrl_op(UBLK_CTRL_END_USER_RECOVERY, false), 0x11);
	assert_int_equal(ublk_io_op(UBLK_IO_FETCH_REQ, false), 0x20);
	assert_int_equal(ublk_io_op(UBLK_IO_COMMIT_AND_FETCH_REQ, false), 0x21);
}

/* Offsets in bytes. */
static void layouts(void **state)
{
	assert_int_equal(offsetof(struct ublk_ctrl_cmd, queue_id), 4);
	assert_int_equal(offsetof(struct ublk_ctrl_cmd, len), 6);
	assert_int_equal(offsetof(struct ublk_ctrl_cmd, addr), 8);
	assert_int_equal(offsetof(struct ublk_ctrl_cmd, data), 16);
	assert_int_equal(offsetof(struct ublk_dev_info, state), 4);
	assert_int_equal(offsetof(struct ublk_dev_info, max_io_buf_bytes), 8);
	assert_int_equal(offsetof(struct ublk_dev_info, dev_id), 12);
	assert_int_equal(offsetof(struct ublk_dev_info, server_pid), 16);
	assert_int_equal(offsetof(struct ublk_dev_info, flags), 24);
	assert_int_equal(offsetof(struct ublk_params, types), 4);
	assert_int_equal(offsetof(struct ublk_params, basic.attrs), 8);
	assert_int_equal(offsetof(struct ublk_params, basic.max_sectors), 16);
	assert_int_equal(offsetof(struct ublk_params, basic.dev_sectors), 24);
	assert_int_equal(offsetof(struct ublk_params, discard.discard_granularity), 44);
	assert_int_equal(offsetof(struct ublk_params, discard.max_discard_segments), 56);
	assert_int_equal(offsetof(struct ublk_io_desc, nr_sectors), 4);
	assert_int_equal(offsetof(struct ublk_io_desc, start_sector), 8);
	assert_int_equal(offsetof(struct ublk_io_cmd, tag), 2);
	assert_int_equal(offsetof(struct ublk_io_cmd, result), 4);
	assert_int_equal(offsetof(struct ublk_io_cmd, addr), 8);
	/* 4096 descriptors of 24 bytes */
	assert_int_equal(UBLK_DESC_STRIDE, 98304);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(encoded_opcodes),
		cmocka_unit_test(plain_opcodes),
		cmocka_unit_test(layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
