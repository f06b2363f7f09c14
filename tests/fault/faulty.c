// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/fault/faulty.h"
#include "common/util.h"
#include "daemon/store/ring.h"

#include <string.h>

#define RULES	  64u
#define TRANSFERS 512u

enum effect {
	FAIL,
	CORRUPT,
};

struct rule {
	enum effect effect;
	enum faulty_op ops;
	uint64_t from, to;
	int32_t error;
	uint32_t count;
};

/* One on its way, or held. */
struct transfer {
	struct ring_op op; /* the ring's; behind it stands */
	struct ring_op *owner;
	struct rule rule; /* count 0: none */
	struct ring *ring;
	void *buf;
	unsigned len;
	uint64_t off;
	int buf_index;
	bool write, used;
};

static struct rule rules[RULES];
static unsigned nrules, hits, nheld;
static bool hold;
static struct transfer transfers[TRANSFERS], *held[TRANSFERS];

void __real_ring_store_read(struct ring *r, struct ring_op *op, void *buf, unsigned len,
			    uint64_t off, int buf_index);
void __real_ring_store_write(struct ring *r, struct ring_op *op, const void *buf, unsigned len,
			     uint64_t off, int buf_index);
void __wrap_ring_store_read(struct ring *r, struct ring_op *op, void *buf, unsigned len,
			    uint64_t off, int buf_index);
void __wrap_ring_store_write(struct ring *r, struct ring_op *op, const void *buf, unsigned len,
			     uint64_t off, int buf_index);

static void add(struct rule rule)
{
	z_assert(nrules < RULES);
	rules[nrules++] = rule;
}

void faulty_fail(enum faulty_op ops, uint64_t from, uint64_t to, int32_t error, uint32_t count)
{
	add((struct rule){FAIL, ops, from, to, error, count});
}

void faulty_corrupt(uint64_t from, uint64_t to, uint32_t count)
{
	add((struct rule){CORRUPT, FAULTY_READ, from, to, 0, count});
}

void faulty_hold(void)
{
	hold = true;
}

unsigned faulty_held(void)
{
	return nheld;
}

unsigned faulty_hits(void)
{
	return hits;
}

void faulty_reset(void)
{
	nrules = hits = nheld = 0;
	hold = false;
	memset(transfers, 0, sizeof(transfers));
}

static void done(struct ring_op *op, int32_t res, uint32_t flags)
{
	struct transfer *t = container_of(op, struct transfer, op);

	t->used = false;
	if (t->rule.count && t->rule.effect == FAIL) {
		res = t->rule.error;
		/* What a failed read leaves in memory is anybody's guess. */
		if (!t->write)
			memset(t->buf, 0xd5, t->len);
	} else if (t->rule.count) {
		for (unsigned at = 1234; at < t->len; at += 4096)
			((uint8_t *)t->buf)[at] ^= 4;
	}
	t->owner->done(t->owner, res, flags);
}

static void start(struct transfer *t)
{
	if (t->write)
		__real_ring_store_write(t->ring, &t->op, t->buf, t->len, t->off, t->buf_index);
	else
		__real_ring_store_read(t->ring, &t->op, t->buf, t->len, t->off, t->buf_index);
}

static void find_rule(struct transfer *t)
{
	for (unsigned i = 0; i < nrules; i++) {
		struct rule *r = &rules[i];

		if (r->count == 0 || !(r->ops & (t->write ? FAULTY_WRITE : FAULTY_READ)) ||
		    t->off >= r->to || t->off + t->len <= r->from)
			continue;
		t->rule = *r;
		if (r->count != FAULTY_ALWAYS)
			r->count--;
		hits++;
		return;
	}
}

static void transfer(struct transfer new)
{
	struct transfer *t = transfers;

	while (t->used)
		z_assert(++t < transfers + TRANSFERS);
	*t = new;
	t->used = true;
	t->op.done = done;
	find_rule(t);
	if (hold)
		held[nheld++] = t;
	else
		start(t);
}

void faulty_release(void)
{
	hold = false;
	for (unsigned i = 0; i < nheld; i++) {
		start(held[i]);
		ring_submit(held[i]->ring);
	}
	nheld = 0;
}

void __wrap_ring_store_read(struct ring *r, struct ring_op *op, void *buf, unsigned len,
			    uint64_t off, int buf_index)
{
	transfer((struct transfer){.owner = op,
				   .ring = r,
				   .buf = buf,
				   .len = len,
				   .off = off,
				   .buf_index = buf_index});
}

void __wrap_ring_store_write(struct ring *r, struct ring_op *op, const void *buf, unsigned len,
			     uint64_t off, int buf_index)
{
	transfer((struct transfer){.owner = op,
				   .ring = r,
				   .buf = (void *)(uintptr_t)buf,
				   .len = len,
				   .off = off,
				   .buf_index = buf_index,
				   .write = true});
}
