/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's interface to ublk, as far as it is used here.
 *
 * Source: the kernel's Documentation/block/ublk.rst and the UAPI of its driver; kernels 6.1 to
 * today.  It is declared here because the header that a distribution installs is as old as its
 * kernel headers, which may be years behind the kernel that runs.
 *
 * Control commands go to /dev/ublk-control as IORING_OP_URING_CMD in a ring with 128-byte entries,
 * I/O commands to /dev/ublkcN in one with entries of either size.  The result is the completion's
 * res.
 */
#ifndef ZSWAPD_UBLK_ABI_H
#define ZSWAPD_UBLK_ABI_H

#include <linux/ioctl.h>
#include <stddef.h>
#include <stdint.h>

#define UBLK_CONTROL_PATH "/dev/ublk-control"

/* Control commands.  Numbered as such up to 6.3, ioctl-encoded since 6.4; see ublk_ctrl_op(). */
enum ublk_ctrl_nr {
	UBLK_CTRL_GET_QUEUE_AFFINITY = 0x01,
	UBLK_CTRL_GET_DEV_INFO = 0x02,
	UBLK_CTRL_ADD_DEV = 0x04,
	UBLK_CTRL_DEL_DEV = 0x05,
	UBLK_CTRL_START_DEV = 0x06,
	UBLK_CTRL_STOP_DEV = 0x07,
	UBLK_CTRL_SET_PARAMS = 0x08,
	UBLK_CTRL_START_USER_RECOVERY = 0x10,
	UBLK_CTRL_END_USER_RECOVERY = 0x11,
	UBLK_CTRL_GET_FEATURES = 0x13,	/* 6.5; encoded only */
	UBLK_CTRL_DEL_DEV_ASYNC = 0x14, /* 6.9; encoded only */
};

/* The kernel's own ENOTSUPP, with which some versions answer a control command they don't know. */
#define UBLK_ENOTSUPP 524

/* I/O commands. */
enum ublk_io_nr {
	UBLK_IO_FETCH_REQ = 0x20,
	UBLK_IO_COMMIT_AND_FETCH_REQ = 0x21,
};

/* In the entry's command area (16 bytes of the 80). */
struct ublk_ctrl_cmd {
	uint32_t dev_id;   /* UINT32_MAX with ADD_DEV: any that is free */
	uint16_t queue_id; /* UINT16_MAX where none is meant */
	uint16_t len;	   /* bytes at addr */
	uint64_t addr;
	uint64_t data[2];
};

_Static_assert(sizeof(struct ublk_ctrl_cmd) == 32, "the kernel's struct ublksrv_ctrl_cmd");

enum ublk_dev_state {
	UBLK_DEV_DEAD = 0,
	UBLK_DEV_LIVE = 1,
	UBLK_DEV_QUIESCED = 2, /* its server died; waits for START_USER_RECOVERY */
	UBLK_DEV_FAIL_IO = 3,
};

struct ublk_dev_info {
	uint16_t nr_hw_queues;
	uint16_t queue_depth;
	uint16_t state; /* enum ublk_dev_state */
	uint16_t pad0;
	uint32_t max_io_buf_bytes;
	uint32_t dev_id;
	int32_t server_pid;
	uint32_t pad1;
	uint64_t flags; /* UBLK_F_; what the kernel does not know it clears in ADD_DEV */
	uint64_t server_flags;
	uint64_t reserved[3];
};

_Static_assert(sizeof(struct ublk_dev_info) == 64, "the kernel's struct ublksrv_ctrl_dev_info");

#define UBLK_F_USER_RECOVERY	     (1ull << 3)
#define UBLK_F_USER_RECOVERY_REISSUE (1ull << 4)
#define UBLK_F_CMD_IOCTL_ENCODE	     (1ull << 6)
#define UBLK_F_NO_AUTO_PART_SCAN     (1ull << 18)

#define UBLK_PARAM_BASIC	     (1u << 0)
#define UBLK_PARAM_DISCARD	     (1u << 1)

/* SET_PARAMS: len says how much of the kernel's longer structure follows. */
struct ublk_params {
	uint32_t len;
	uint32_t types; /* UBLK_PARAM_ */
	struct {
		uint32_t attrs; /* 0: no volatile cache, not rotational, no FUA, writable */
		uint8_t logical_bs_shift;
		uint8_t physical_bs_shift;
		uint8_t io_opt_shift;
		uint8_t io_min_shift;
		uint32_t max_sectors;
		uint32_t chunk_sectors;
		uint64_t dev_sectors;
		uint64_t virt_boundary_mask;
	} basic;
	struct {
		uint32_t discard_alignment;
		uint32_t discard_granularity; /* bytes */
		uint32_t max_discard_sectors;
		uint32_t max_write_zeroes_sectors;
		uint16_t max_discard_segments; /* must be 1 */
		uint16_t reserved;
	} discard;
};

_Static_assert(offsetof(struct ublk_params, discard) == 40, "the kernel's struct ublk_params");

/* What a queue's mapping of /dev/ublkcN holds for each tag; read-only. */
struct ublk_io_desc {
	uint32_t op_flags; /* enum ublk_op in the low 8 bits */
	uint32_t nr_sectors;
	uint64_t start_sector;
	uint64_t addr;
};

_Static_assert(sizeof(struct ublk_io_desc) == 24, "the kernel's struct ublksrv_io_desc");

/*
 * Queue q's descriptors are mapped at q times this offset, whatever the depth: the room that the
 * deepest queue of the ABI needs.
 */
#define UBLK_DEPTH_MAX	 4096u
#define UBLK_DESC_STRIDE ((UBLK_DEPTH_MAX * sizeof(struct ublk_io_desc) + 4095) / 4096 * 4096)

enum ublk_op {
	UBLK_OP_READ = 0,
	UBLK_OP_WRITE = 1,
	UBLK_OP_FLUSH = 2,
	UBLK_OP_DISCARD = 3,
	UBLK_OP_WRITE_ZEROES = 5,
};

#define UBLK_OP_MASK 0xffu

/* In the entry's command area. */
struct ublk_io_cmd {
	uint16_t q_id;
	uint16_t tag;
	int32_t result; /* bytes for a read or write, 0 for the others, or a negative errno */
	uint64_t addr;	/* of the tag's buffer */
};

_Static_assert(sizeof(struct ublk_io_cmd) == 16, "the kernel's struct ublksrv_io_cmd");

/* Completion of an I/O command: 0 is a request; this one means do not fetch again. */
#define UBLK_IO_ABORTED (-ENODEV)

/* The opcode on the wire. */
static inline uint32_t ublk_ctrl_op(enum ublk_ctrl_nr nr, _Bool encoded)
{
	/* Those that only ask are encoded as reads, the others as both. */
	switch (nr) {
	case UBLK_CTRL_GET_QUEUE_AFFINITY:
	case UBLK_CTRL_GET_DEV_INFO:
	case UBLK_CTRL_GET_FEATURES:
	case UBLK_CTRL_DEL_DEV_ASYNC:
		return encoded ? _IOR('u', nr, struct ublk_ctrl_cmd) : (uint32_t)nr;
	default:
		return encoded ? _IOWR('u', nr, struct ublk_ctrl_cmd) : (uint32_t)nr;
	}
}

static inline uint32_t ublk_io_op(enum ublk_io_nr nr, _Bool encoded)
{
	return encoded ? _IOWR('u', nr, struct ublk_io_cmd) : (uint32_t)nr;
}

#endif
