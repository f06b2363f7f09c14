// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/progress.h"
#include "common/util.h"
#include "ctl/cell.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define BAR_MIN 8
#define BAR_MAX 40

void progress_name(char buf[static PROGRESS_NAME_MAX], const struct ctl_job *j)
{
	const char *name = j->kind.known ? nlproto_job_name(j->kind.v) : "job";

	if (name)
		snprintf(buf, PROGRESS_NAME_MAX, "%s", name);
	else
		snprintf(buf, PROGRESS_NAME_MAX, "job of kind %" PRIu64, j->kind.v);
}

/* An amount in the job's unit. */
static struct cell amount(const struct ctl_job *j, struct ctl_num n)
{
	struct cell c;

	if (!j->unit.known || !n.known)
		return cell_count(n);
	switch (j->unit.v) {
	case NLPROTO_UNIT_BYTES:
		return cell_bytes(n);
	case NLPROTO_UNIT_PAGES:
		snprintf(c.s, sizeof(c.s), "%" PRIu64 " pages", n.v);
		return c;
	default:
		return cell_count(n);
	}
}

/* "1.2 GiB of 3.4 GiB  31.0 MiB/s  5 s left", as far as it is known. */
static void put_amounts(char *buf, size_t size, const struct ctl_job *j, uint64_t first_done,
			double seconds)
{
	uint64_t done = j->done.known ? j->done.v : 0;
	double rate = done > first_done && seconds > 0 ? (double)(done - first_done) / seconds : 0;
	int n = snprintf(buf, size, "%s", amount(j, j->done).s);

	if (j->total.known && j->total.v >= done)
		n += snprintf(buf + n, size - (size_t)n, " of %s", amount(j, j->total).s);
	if (rate < 1)
		return;
	n += snprintf(buf + n, size - (size_t)n, "  %s/s",
		      amount(j, (struct ctl_num){true, (uint64_t)rate}).s);
	if (j->total.known && j->total.v >= done)
		snprintf(buf + n, size - (size_t)n, "  %.0f s left",
			 ceil((double)(j->total.v - done) / rate));
}

void progress_line(char buf[static PROGRESS_MAX], int width, const struct ctl_job *j,
		   uint64_t first_done, double seconds)
{
	bool share_known = j->done.known && j->total.known && j->total.v;
	double share = share_known ? fmin((double)j->done.v / (double)j->total.v, 1) : 0;
	char name[PROGRESS_NAME_MAX], amounts[PROGRESS_MAX], bar[BAR_MAX + 1];
	int columns;

	progress_name(name, j);
	put_amounts(amounts, sizeof(amounts), j, first_done, seconds);
	/* name, " [", bar, "] ", "100 %", two blanks, amounts */
	columns = width - (int)strlen(name) - 11 - (int)strlen(amounts);
	if (columns > BAR_MAX)
		columns = BAR_MAX;
	if (columns < BAR_MIN || !share_known) {
		snprintf(buf, PROGRESS_MAX, "%.64s  %.180s", name, amounts);
	} else {
		memset(bar, ' ', sizeof(bar));
		memset(bar, '#', (size_t)(share * columns));
		bar[columns] = '\0';
		snprintf(buf, PROGRESS_MAX, "%.32s [%s] %3.0f %%  %.128s", name, bar,
			 floor(share * 100), amounts);
	}
	if (width >= 0 && width < PROGRESS_MAX)
		buf[width] = '\0';
}

static void put_done(char buf[static PROGRESS_MAX], const struct ctl_job *j)
{
	struct cell n = amount(j, j->done);
	char name[PROGRESS_NAME_MAX];

	progress_name(name, j);
	switch (j->kind.v) {
	case NLPROTO_JOB_WRITEBACK:
	case NLPROTO_JOB_SHRINK:
		snprintf(buf, PROGRESS_MAX, "%s: %s of memory have become free", name, n.s);
		break;
	case NLPROTO_JOB_COMPACT:
		snprintf(buf, PROGRESS_MAX, "%s: %s of memory and store have become free", name,
			 n.s);
		break;
	case NLPROTO_JOB_CHECK:
		snprintf(buf, PROGRESS_MAX, "%s: %s verified, %s damaged", name, n.s,
			 j->found.known && !j->found.v ? "none" : cell_count(j->found).s);
		break;
	default:
		snprintf(buf, PROGRESS_MAX, "%s: done, %s", name, n.s);
	}
}

/* What to make of an error, where its number says too little. */
static const char *reason(const struct ctl_job *j)
{
	if (!j->error.known)
		return "the reason is not known";
	if (j->error.v != ENOSPC)
		return strerror((int)j->error.v);
	switch (j->kind.v) {
	case NLPROTO_JOB_WRITEBACK:
		return "the store has no room left; enlarge store.size";
	case NLPROTO_JOB_COMPACT:
		return "there is no room to move pages to; raise memory.limit for it";
	case NLPROTO_JOB_SHRINK:
		return "memory gets no less; is the store full or failing? See 'zswapctl status'";
	default:
		return strerror(ENOSPC);
	}
}

void progress_result(char buf[static PROGRESS_MAX], const struct ctl_job *j)
{
	char name[PROGRESS_NAME_MAX];

	if (!j->kind.known || !j->state.known || j->state.v == NLPROTO_JOB_STATE_NONE) {
		snprintf(buf, PROGRESS_MAX, "no job so far");
		return;
	}
	progress_name(name, j);
	switch (j->state.v) {
	case NLPROTO_JOB_STATE_RUNNING:
		snprintf(buf, PROGRESS_MAX, "%s: running, %s", name, amount(j, j->done).s);
		break;
	case NLPROTO_JOB_STATE_DONE:
		put_done(buf, j);
		break;
	case NLPROTO_JOB_STATE_FAILED:
		snprintf(buf, PROGRESS_MAX, "%s: failed after %s: %.120s", name,
			 amount(j, j->done).s, reason(j));
		break;
	case NLPROTO_JOB_STATE_CANCELLED:
		snprintf(buf, PROGRESS_MAX, "%s: cancelled after %s", name, amount(j, j->done).s);
		break;
	default:
		snprintf(buf, PROGRESS_MAX, "%s: in state %" PRIu64, name, j->state.v);
	}
}
