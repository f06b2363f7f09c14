#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The engine alone, without kernel swap or a transport, against what it is made of: zstd, the device.
#
# Everything that is compared takes turns within a round, so that only ratios of one run mean
# something; each ratio is taken within its round, and the median of the rounds is shown with the
# least and the greatest.  What each measurement does stands at the top of engine_bench.c,
# engine_resident.c and engine_overlap.c.
#
#   resident   all pages in memory: batches of 1, 8, 32 one-page requests against bare zstd of the
#              same level in the same process.  Same-filled pages are left out of both.
#   evict      sealed segments of incompressible pages on their way to the store, against fio's
#              1 MiB sequential direct writes of as many bytes at the engine's queue depth.  fio
#              writes the same few buffers again and again, which stay in the CPU's caches, and
#              where the device is a file of the host that is worth a lot; so "bare" writes 512
#              different MiB, in the same process, with nothing around the write
#   through    the same bytes written as pages, through a small front tier: with page checks, zstd's
#              attempt, copying and the mover's thread
#   read       one-page reads of stored slots at random, expansion included, against fio's 4 KiB
#              random direct reads of the same bytes of the same file at the same depth; of real
#              pages and of incompressible ones
#   overlap    windows of 8 and 16 pages of which 73 % are in the store, overlap on against off
#   writeback  requests and bytes for each page that goes to the store
#
# fio uses io_uring with registered buffers and files, as the engine does, and one call for all
# requests that can be sent at once.
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lib/cleanup.sh"

usage()
{
	cat <<'TEXT'
usage: engine.sh [OPTION]...
  --build DIR       with engine_bench and corpus-capture (else they are built, then removed)
  --pages FILE      the corpus (tests/corpus/corpus.pages, made when missing)
  --workdir DIR     where the store lies ($TMPDIR or /var/tmp); 2 GiB must be free
  --rounds N        (5)
  --ms N            length of one timed measurement (500)
  --levels LIST     zstd levels of `resident` (1,-1,3); the first one is that of the others
  --only LIST       (resident,evict,through,read,overlap,writeback)
  --json FILE       the result as JSON
TEXT
}

build=
pages=$here/../corpus/corpus.pages
workdir=${TMPDIR:-/var/tmp}
rounds=5
ms=500
levels=1,-1,3
only=resident,evict,through,read,overlap,writeback
json=
while [ $# -gt 0 ]; do
	[ "$1" != --help ] || {
		usage
		exit 0
	}
	[ $# -ge 2 ] || {
		usage >&2
		exit 2
	}
	case $1 in
	--build) build=$2 ;;
	--pages) pages=$2 ;;
	--workdir) workdir=$2 ;;
	--rounds) rounds=$2 ;;
	--ms) ms=$2 ;;
	--levels) levels=$2 ;;
	--only) only=$2 ;;
	--json) json=$2 ;;
	*)
		usage >&2
		exit 2
		;;
	esac
	shift 2
done
level=${levels%%,*}

# --- what must be there --------------------------------------------------------------------------

for tool in fio jq; do
	command -v $tool >/dev/null || die "$tool is not installed (Debian package $tool)"
done
work=$(mktemp -d -p "$workdir" zswapd-engine-XXXXXX)
cleanup_push rm -rf "$work"
[ "$(df --output=avail -B1M "$workdir" | tail -1)" -gt 2048 ] || die "$workdir has less than 2 GiB free"
if [ -z "$build" ]; then
	build=$work/build
	meson setup "$build" "$here/../.." >"$work/build.log" 2>&1 &&
		ninja -C "$build" tests/bench/engine_bench tests/corpus/corpus-capture >>"$work/build.log" 2>&1 || {
		tail -20 "$work/build.log" >&2
		die "the build failed"
	}
fi
bench=$build/tests/bench/engine_bench
[ -x "$bench" ] || die "no engine_bench in $build: build it there, or leave --build out"
[ -f "$pages" ] || CORPUS_CAPTURE=$build/tests/corpus/corpus-capture "$here/../corpus/make-corpus.sh" "$pages" >&2
results=$work/results
store=$work/store
: >"$results"

# --- engine_bench and fio ------------------------------------------------------------------------

wanted()
{
	[[ ,$only, == *,$1,* ]] || return 1
	note "$1"
}

# keep TEST GROUP [JQ-ARGUMENT]...: the object on standard input becomes a result.
keep()
{
	local test=$1 group=$2
	shift 2
	jq -c --arg test "$test" --arg group "$group" "$@" '{test: $test, group: $group, values: .}' >>"$results"
}

# bench_start MODE [OPTION]...: waits until it has set up; $ready is what it says then.
bench_start()
{
	coproc BENCH { exec "$bench" "$@" --store "$store" --ms "$ms" 2>"$work/bench.log"; }
	bench_pid=$BENCH_PID
	cleanup_pid "$bench_pid"
	# Only these are left: the end of file that stops it comes when the last copy is closed.
	exec 7<&"${BENCH[0]}" 8>&"${BENCH[1]}"
	eval "exec ${BENCH[0]}<&- ${BENCH[1]}>&-"
	read -t 300 -r ready <&7 || bench_failed
}

bench_failed()
{
	cat "$work/bench.log" >&2
	die "engine_bench ended early"
}

# bench_ask LINE: one measurement; prints its result.
bench_ask()
{
	local answer
	echo "$1" >&8
	read -t 120 -r answer <&7 || bench_failed
	echo "$answer"
}

bench_stop()
{
	exec 7<&- 8>&-
	wait "$bench_pid" || bench_failed
}

fio_run()
{
	fio --name=job --filename="$store" --ioengine=io_uring --direct=1 --fixedbufs --registerfiles \
		--gtod_reduce=1 --output-format=json "$@" >"$work/fio.json" || die "fio failed"
}

# fio_reads DEPTH OFFSET BYTES
fio_reads()
{
	fio_run --rw=randread --bs=4k --readonly --norandommap --randrepeat=0 --iodepth="$1" \
		--iodepth_batch_submit="$1" --iodepth_batch_complete_min=1 \
		--iodepth_batch_complete_max="$1" --offset="$2" --size="$3" --time_based \
		--runtime="${ms}ms"
	jq '.jobs[0] | {per_s: .read.iops,
		cpu_us: ((.usr_cpu + .sys_cpu) * 1e4 / .read.iops), mean_bytes: (.read.io_bytes / .read.total_ios)}' \
		"$work/fio.json"
}

# fio_writes OFFSET BYTES
fio_writes()
{
	fio_run --rw=write --bs=1M --iodepth=4 --offset="$1" --size="$2"
	jq '.jobs[0] | {mb_per_s: (.write.bw_bytes / 1e6),
		cpu_us_per_segment: ((.usr_cpu + .sys_cpu) * .write.runtime * 10 / .write.total_ios)}' \
		"$work/fio.json"
}

# --- measurements --------------------------------------------------------------------------------

measure_resident()
{
	local l
	for l in ${levels//,/ }; do
		"$bench" resident --pages "$pages" --level="$l" --rounds "$rounds" 2>"$work/bench.log" >"$work/out" || bench_failed
		keep resident "level $l" <"$work/out"
	done
}

write_mib=512

# compare_writes TEST: fio rests before it starts for as long as the engine needs to prepare, since
# what a device takes depends on what it was given just before.
compare_writes()
{
	local test=$1 round engine bare fio turn offset
	offset=$(jq .offset <<<"$ready")
	# Once over all of it, so that no round is the first.
	fio_writes "$offset" ${write_mib}M >"$work/warm-up"
	for ((round = 1; round <= rounds; round++)); do
		for turn in $((round % 3)) $(((round + 1) % 3)) $(((round + 2) % 3)); do
			if [ "$turn" -eq 0 ]; then
				engine=$(bench_ask engine)
			elif [ "$turn" -eq 1 ]; then
				sleep 1.5
				bare=$(bench_ask bare)
			else
				sleep 1.5
				fio=$(fio_writes "$offset" ${write_mib}M)
			fi
		done
		jq -n --argjson e "$engine" --argjson b "$bare" --argjson f "$fio" \
			'{engine: $e, bare: $b, fio: $f, ratio: ($e.mb_per_s / $f.mb_per_s),
			bare_ratio: ($e.mb_per_s / $b.mb_per_s)}' | keep "$test" all
	done
}

measure_evict()
{
	bench_start evict --slots $((write_mib * 255)) --store-mib $((write_mib + 64))
	compare_writes evict
	bench_stop
}

measure_through()
{
	bench_start through --slots $((write_mib * 256)) --store-mib $((write_mib + 64)) --memory-mib 32 --level=-7
	compare_writes through
	bench_stop
}

# compare_reads GROUP
compare_reads()
{
	local round depth turn engine fio offset used
	offset=$(jq .offset <<<"$ready")
	used=$(jq .used <<<"$ready")
	for ((round = 1; round <= rounds; round++)); do
		for depth in 1 8 32; do
			for turn in $((round % 2)) $(((round + 1) % 2)); do
				if [ "$turn" -eq 0 ]; then
					engine=$(bench_ask $depth)
				else
					fio=$(fio_reads $depth "$offset" "$used")
				fi
			done
			jq -n --argjson e "$engine" --argjson f "$fio" \
				'{engine: $e, fio: $f, ratio: ($e.per_s / $f.per_s)}' | keep read "$1 depth $depth"
		done
	done
}

measure_read()
{
	bench_start read --pages "$pages" --slots 262144 --memory-mib 24 --level="$level"
	compare_reads "real pages"
	bench_stop
	bench_start read --slots 65536 --memory-mib 24
	compare_reads "raw pages"
	bench_stop
}

measure_overlap()
{
	"$bench" overlap --pages "$pages" --store "$store" --slots 262144 --level="$level" --ms "$ms" \
		--rounds "$rounds" 2>"$work/bench.log" >"$work/out" || bench_failed
	keep overlap all <"$work/out"
}

measure_writeback()
{
	"$bench" writeback --pages "$pages" --store "$store" --level="$level" --rounds "$rounds" \
		2>"$work/bench.log" >"$work/out" || bench_failed
	keep writeback all <"$work/out"
}

for test in resident evict through read overlap writeback; do
	! wanted $test || measure_$test
	rm -f "$store"
done
[ -s "$results" ] || die "--only names nothing that there is"

# --- the result ----------------------------------------------------------------------------------

jq -s --arg kernel "$(uname -r)" --argjson cpus "$(nproc)" --argjson rounds "$rounds" \
	--arg level "$level" '
	def median: sort | if length % 2 == 1 then .[(length - 1) / 2]
		else (.[length / 2 - 1] + .[length / 2]) / 2 end;
	def summary: {median: median, min: min, max: max};
	def numbers_of: . as $v | reduce paths(numbers) as $p ({}; .[$p | map(tostring) | join(".")] = ($v | getpath($p)));
	{kernel: $kernel, cpus: $cpus, level: ($level | tonumber), round_count: $rounds,
	 medians: (group_by(.test) | map({key: .[0].test, value: (group_by(.group) | map(
		. as $lines | ($lines[0].values | numbers_of | keys_unsorted) as $keys |
		{key: $lines[0].group, value: (reduce $keys[] as $k ({};
			.[$k] = ([$lines[].values | numbers_of | .[$k]] | summary)))}) | from_entries)}) | from_entries),
	 rounds: .}' "$results" >"$work/result.json"
[ -z "$json" ] || cp "$work/result.json" "$json"

echo "zstd level $level where none is named, medians of $rounds rounds (least to greatest), kernel $(uname -r)"
echo
echo "| | engine | compared with | ratio | aim |"
echo "| --- | --- | --- | --- | --- |"
jq -r '
	def round1($digits): . * pow(10; $digits) | round / pow(10; $digits);
	def k: if . >= 1000 then "\(. / 1000 | round1(1))k" else "\(round1(1))" end;
	def spread($d): "\(.median | round1($d)) (\(.min | round1($d)) to \(.max | round1($d)))";
	def row($name; $engine; $other; $ratio; $aim): "| \($name) | \($engine) | \($other) | \($ratio) | \($aim) |";
	.medians as $m |
	($m.resident // {} | to_entries[] | .key as $level | .value as $v |
		("write", "read") as $op | ("batch1", "batch8", "batch32") as $b |
		row("resident \($op)s, \($level), \($b | sub("batch"; "batch "))";
			"\($v["\($op).\($b).per_s"].median | k)/s";
			"zstd \($v["\($op).raw0.per_s"].median | k)/s";
			$v["\($op).\($b).ratio"] | spread(2); "0.8")),
	("evict", "through" | . as $t | $m[$t].all | values |
		row(if $t == "evict" then "store writes, sealed segments" else "store writes, page by page, zstd -7" end;
			"\(.["engine.mb_per_s"].median | round) MB/s";
			"fio \(.["fio.mb_per_s"].median | round) MB/s"; .ratio | spread(2); "0.9"),
		row("the same";
			"\(.["engine.mb_per_s"].median | round) MB/s";
			"bare \(.["bare.mb_per_s"].median | round) MB/s"; .bare_ratio | spread(2); "-")),
	($m.read // {} | to_entries | sort_by(.key | [split(" depth ")[0], (split(" depth ")[1] | tonumber)])[] |
		row("random store reads, \(.key)"; "\(.value["engine.per_s"].median | k)/s";
			"fio \(.value["fio.per_s"].median | k)/s"; .value.ratio | spread(2); "0.9")),
	($m.overlap.all | values | . as $v | ("window8", "window16") as $w |
		row("overlap on, \($w | sub("window"; "window of ")), \($v["\($w).stored_share_read"].median * 100 | round1(1)) % stored";
			"\($v["\($w).on.pages_per_s"].median | k) pages/s, \($v["\($w).on.window_us"].median | round1(0)) µs";
			"off \($v["\($w).off.pages_per_s"].median | k) pages/s, \($v["\($w).off.window_us"].median | round1(0)) µs";
			$v["\($w).gain"] | spread(3); "1.101")),
	($m.writeback.all | values | . as $v | ("in_order", "at_random") as $w |
		row("pages for each store write, written \($w | sub("_"; " "))";
			$v["\($w).pages_per_write"] | spread(0); "-"; "-"; "64"),
		row("store bytes for each page evicted, share of 4096, written \($w | sub("_"; " "))";
			$v["\($w).share"] | spread(3); "-"; "-"; "0.35"))' "$work/result.json"
