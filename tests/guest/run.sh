#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs a script in a virtual machine with a Debian kernel and this build of zswapd.
# usage: run.sh [OPTION]... SCRIPT [ARG]...
#
#   --build DIR       the meson build directory to take the programs from ($ZSWAPD_BUILD, build)
#   --kernel PATTERN  which kernel, see kernel.sh                       ($ZSWAPD_GUEST_KERNEL, 6.12.*)
#   --memory MIB      (512)
#   --cpus N          (2)
#   --limit SECONDS   (120) for the whole run; then the machine is killed
#   --drive SIZE[,KEY=VALUE]...  one more NVMe drive, on a sparse file: /dev/drive0, /dev/drive1, ...;
#                     iops=N and bps=N throttle it, another KEY is qemu's (-drive)
#   --poll-queues N   (0) polled queues of each NVMe drive
#   --no-load MODULE  leaves a module out that is loaded by default, so that `load` in SCRIPT can do it
#   --built PROGRAM   puts another program of the build on the root file system
#   --program FILE    puts another program with its libraries on the root file system
#   --file FILE       copies a file to /files/ of the guest; it takes nothing of its memory
#   --corpus MIB      makes /files/corpus.pages of that size, pages of real programs
#   --append TEXT     more kernel parameters
#   --expect REGEX    kernel messages that are no failure, beside what SCRIPT allows
#   --output DIR      where results and logs go, kept; without, a directory that is kept on failure
#   --systemd         boots a Debian 12 with systemd instead, with zswapd as `meson install` leaves it;
#                     SCRIPT is run by a service, and by another boot again if it asks for one
#                     (lib-systemd.sh); modules are loaded by whoever needs them
#   --keep            keeps it on success too
#   --icount          an instruction takes a nanosecond of the guest's time, on one CPU after the other:
#                     what it measures then is work, and does not depend on what else this machine does
#   --kvm             hardware virtualisation ($ZSWAPD_GUEST_ACCEL=kvm); emulated otherwise
#
# SCRIPT may hold such options itself, in lines that begin with "# guest: "; those on the command line
# come after them.  It is run by bash as /zswapd/tests/guest/NAME of the guest, next to lib.sh, which
# says what it can use.  What it writes to /results is in DIR/results, also if the guest dies.
#
# DIR/console.log is the kernel's console, DIR/output what SCRIPT printed.
#
# Status: that of SCRIPT (77: skipped); 123 it succeeded, but the kernel complained; 124 over the limit;
# 125 the guest died, with a panic or without.
#
# The guest's root is an ext4 image, read-only without --systemd: its programs can be dropped from
# memory and read again, as on a real machine, and take none of a small guest's memory.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
# shellcheck source=tests/lib/cleanup.sh
. "$here/../lib/cleanup.sh"

# What a guest always has, from the build and from this machine.
BUILT=(daemon/main/zswapd ctl/zswapctl tests/system/pageload tests/system/slots tests/guest/taskwatch
	tests/guest/guard)
PROGRAMS=(bash blkid flock losetup mkswap setpriv swapoff swapon)
# Loaded before the root is there; loaded before SCRIPT starts; there for SCRIPT to load.
EARLY_MODULES='virtio_pci virtio_blk crc32c_generic ext4'
BOOT_MODULES='9p 9pnet_virtio nvme loop fuse ublk_drv'
OTHER_MODULES='zram zstd dm-mod dm-flakey dm-delay'
BOOTS_MAX=5
# What the kernel says when something is wrong.
COMPLAINTS='BUG:|WARNING:|Oops|Kernel panic|blocked for more than|Out of memory|oom-kill:|oom_reaper'
COMPLAINTS+='|page allocation failure|general protection|segfault at|traps:|rcu.*(stall|starved)|soft lockup'
COMPLAINTS+='|I/O error|Read-error on swap-device|Write-error on swap-device|Bad swap|bad_page|Bad page'

usage()
{
	sed -n '3,40s/^# \?//p' "$0"
	exit 2
}

option()
{
	case $1 in
	--build) build=$2 ;;
	--kernel) kernel=$2 ;;
	--memory) memory=$2 ;;
	--cpus) cpus=$2 ;;
	--limit) limit=$2 ;;
	--drive) drives+=("$2") ;;
	--poll-queues) poll_queues=$2 ;;
	--no-load) no_load+=("$2") ;;
	--built) BUILT+=("$2") ;;
	--program) programs+=("$2") ;;
	--file) files+=("$2") ;;
	--corpus) corpus=$2 ;;
	--append) append+=" $2" ;;
	--expect) expect+="|$2" ;;
	--output) output=$2 ;;
	*) return 1 ;;
	esac
}

build=${ZSWAPD_BUILD:-$top/build} kernel=${ZSWAPD_GUEST_KERNEL:-6.12.*} accel=${ZSWAPD_GUEST_ACCEL:-tcg}
memory=512 cpus=2 limit=120 poll_queues=0 append='' expect='' output='' keep='' corpus='' systemd=''
drives=() no_load=() programs=() files=()

given=()
while [ $# -gt 0 ]; do
	case $1 in
	--keep) keep=1 ;;
	--kvm) accel=kvm ;;
	--systemd) systemd=1 ;;
	--icount) accel=icount ;;
	--help) usage ;;
	--*)
		[ $# -ge 2 ] || usage
		given+=("$1" "$2")
		shift
		;;
	*) break ;;
	esac
	shift
done
[ $# -ge 1 ] || usage
script=$1
shift
[ -f "$script" ] || die "there is no script $script"
while read -r -a line; do
	for ((i = 0; i < ${#line[@]}; i += 2)); do
		option "${line[i]}" "${line[i + 1]-}" || die "$script: unknown option ${line[i]}"
	done
done < <(sed -n 's/^# guest: //p' "$script")
for ((i = 0; i < ${#given[@]}; i += 2)); do
	option "${given[i]}" "${given[i + 1]}" || die "unknown option ${given[i]}"
done

name=$(basename "$script" .sh)
for program in qemu-system-x86_64 busybox mke2fs cpio xz; do
	command -v $program >/dev/null || {
		echo "skipped: $program is not installed"
		exit 77
	}
done
if [ -n "$output" ]; then
	keep=1
	mkdir -p "$output"
else
	output=$(mktemp -d "${TMPDIR:-/var/tmp}/zswapd-guest-$name-XXXXXX")
fi
output=$(realpath "$output")
work=$output/work
cleanup_push finish
rm -rf "$work" "$output/results" "$output/share"
mkdir -p "$work/root" "$work/early" "$output/results" "$output/files"

finish()
{
	rm -rf "$work" "$output/files"
	[ -n "$keep" ] || rm -rf "$output"
}

status=0
kernel_dir=$("$here/kernel.sh" "$kernel") || status=$?
if [ $status -eq 77 ]; then
	echo "skipped: no kernel $kernel in the cache and no network to get one"
	exit 77
elif [ $status -ne 0 ]; then
	die "no kernel"
fi
release=${kernel_dir##*/}
modules=$kernel_dir/lib/modules/$release

if [ -n "$systemd" ]; then
	# shellcheck source=tests/guest/systemd-root.sh
	. "$here/systemd-root.sh"
	debian=$("$here/debian.sh") || status=$?
	if [ $status -eq 77 ]; then
		echo "skipped: no Debian in the cache, and no mmdebstrap or no network to make one"
		exit 77
	elif [ $status -ne 0 ]; then
		die "no Debian"
	fi
fi

# --- the root file system --------------------------------------------------------------------------

root=$work/root

# A program and what it is linked with, under the paths they have here.
add_program()
{
	local lib
	cp -L "$1" "$root/usr/bin/"
	# ldd fails for what is linked statically.
	while read -r lib; do
		[ ! -e "$root$lib" ] || continue
		mkdir -p "$root${lib%/*}"
		cp -L "$lib" "$root$lib"
	done < <(ldd "$1" 2>/dev/null | sed -n 's/^\(.* => \)\?[[:space:]]*\(\/[^ ]*\) (0x.*/\2/p')
}

# The modules that NAME needs, itself last, as paths below $modules; nothing if it is built in.
module_paths()
{
	local found
	found=$(awk -v want="/$1.ko" '
		{ path = $1; sub(/:$/, "", path) }
		index(path, want) && substr(path, index(path, want)) ~ /\.ko(\.[a-z]+)?$/ {
			for (i = NF; i > 1; i--) print $i
			print path
			exit
		}' "$modules/modules.dep")
	[ -n "$found" ] || grep -q "/${1//_/[_-]}\.ko$" "$modules/modules.builtin" || return 1
	echo "$found"
}

# add_modules DIR NAME...: unpacked into DIR, with DIR/NAME.order for each that this kernel has.
add_modules()
{
	local dir=$1 module path file
	shift
	mkdir -p "$dir"
	for module in "$@"; do
		module_paths "$module" >"$work/paths" || continue
		: >"$dir/$module.order"
		while read -r path; do
			[ -n "$path" ] || continue
			file=$(basename "${path%%.ko*}").ko
			echo "$file" >>"$dir/$module.order"
			[ ! -e "$dir/$file" ] || continue
			case $path in
			*.xz) xz -dc "$modules/$path" >"$dir/$file" ;;
			*.zst) zstd -qdc "$modules/$path" >"$dir/$file" ;;
			*) cp "$modules/$path" "$dir/$file" ;;
			esac
		done <"$work/paths"
	done
}

make_root()
{
	local dir program
	mkdir -p "$root"/{usr/bin,usr/sbin,usr/lib,usr/lib64,dev,proc,sys,run,tmp,var/tmp,etc,mnt,root,share}
	for dir in bin sbin lib lib64; do
		ln -s usr/$dir "$root/$dir"
	done
	ln -s share/results "$root/results"
	ln -s share/files "$root/files"
	echo 'root:x:0:0:root:/root:/bin/bash' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	for program in "${BUILT[@]}"; do
		[ -x "$build/$program" ] || die "$build has no $program: build it first (--build DIR)"
		add_program "$build/$program"
	done
	for program in "${PROGRAMS[@]}" ${programs[@]+"${programs[@]}"}; do
		add_program "$(command -v "$program" || die "there is no program $program")"
	done
	cp -L "$(command -v busybox)" "$root/usr/bin/busybox"
	# Takes no name that is there already.
	busybox --list | (cd "$root/usr/bin" && while read -r program; do
		[ -e "$program" ] || ln -s busybox "$program"
	done)
	mkdir -p "$root/zswapd/tests"
	cp -r "$here" "$here/../lib" "$root/zswapd/tests/"
	install -m 755 "$script" "$root/zswapd/tests/guest/$name.sh"
	# shellcheck disable=SC2086
	add_modules "$root/lib/modules" $BOOT_MODULES $OTHER_MODULES
	{
		printf 'GUEST_LIMIT=%q\nGUEST_POLL_QUEUES=%q\nGUEST_DRIVES=%q\n' "$limit" "$poll_queues" "${#drives[@]}"
		printf 'GUEST_COMMAND=(/zswapd/tests/guest/%q' "$name.sh"
		[ $# -eq 0 ] || printf ' %q' "$@"
		printf ')\nGUEST_LOAD=('
		for program in $BOOT_MODULES; do
			[[ " ${no_load[*]-} " == *" $program "* ]] || printf ' %q' "$program"
		done
		printf ')\n'
	} >"$root/etc/guest.conf"
	make_image -O ^has_journal,^metadata_csum
}

# make_image OPTION...: of $root, with room for a few MiB more.
make_image()
{
	mke2fs -q -t ext4 "$@" -b 4096 -m 0 -d "$root" "$work/root.img" >"$work/mke2fs.log" \
		"$(($(du -sk "$root" | cut -f 1) * 11 / 10 + ${more_kib:-4096}))k" ||
		die "mke2fs: $(cat "$work/mke2fs.log")"
}

make_initramfs()
{
	mkdir -p "$work/early"/{bin,dev,proc,sys,root}
	cp -L "$(command -v busybox)" "$work/early/bin/busybox"
	cp "$here/initramfs.sh" "$work/early/init"
	chmod +x "$work/early/init"
	if [ -n "$systemd" ]; then
		echo /lib/systemd/systemd
	else
		echo /zswapd/tests/guest/init.sh
	fi >"$work/early/init.path"
	# shellcheck disable=SC2086
	add_modules "$work/early/modules" $EARLY_MODULES
	# shellcheck disable=SC2086
	(cd "$work/early/modules" && for module in $EARLY_MODULES; do
		[ ! -e "$module.order" ] || cat "$module.order"
	done) | awk '!seen[$0]++' >"$work/early/modules/order"
	(cd "$work/early" && find . | cpio -o -H newc --quiet) >"$work/initramfs"
}

# --- the machine ------------------------------------------------------------------------------------

# What the guest finds in /files.
make_files()
{
	local file
	for file in ${files[@]+"${files[@]}"}; do
		cp --reflink=auto "$file" "$output/files/"
	done
	[ -n "$corpus" ] || return 0
	file=${ZSWAPD_TEST_CORPUS:-$work/corpus.pages}
	CORPUS_CAPTURE=$build/tests/corpus/corpus-capture "$here/../corpus/make-corpus.sh" \
		"$file" "$corpus" >"$work/corpus.log" 2>&1 || die "no corpus: $(tail -n 1 "$work/corpus.log")"
	cp --reflink=auto "$file" "$output/files/corpus.pages"
}

# Sets qemu_drives.
make_drives()
{
	local i key value spec image
	qemu_drives=()
	for ((i = 0; i < ${#drives[@]}; i++)); do
		IFS=, read -r -a spec <<<"${drives[i]}"
		image=$work/nvme$i.img
		truncate -s "${spec[0]}" "$image"
		image="file=$image,format=raw,if=none,id=nvme$i,cache=unsafe,discard=unmap"
		for value in "${spec[@]:1}"; do
			key=${value%%=*}
			case $key in
			iops) value=throttling.iops-total=${value#*=} ;;
			bps) value=throttling.bps-total=${value#*=} ;;
			esac
			image+=,$value
		done
		qemu_drives+=(-drive "$image" -device "nvme,drive=nvme$i,serial=drive$i")
	done
}

launch()
{
	# erms: the kernel would clear and copy pages with instructions that are emulated byte by byte.
	local cpu=max,erms=off accelerator=tcg,thread=multi
	local clock=() root_drive=,readonly=on
	[ -z "$systemd" ] || root_drive=,cache=unsafe
	case $accel in
	kvm) cpu=host accelerator=kvm ;;
	icount) accelerator=tcg,thread=single clock=(-icount shift=0) ;;
	esac
	# The kernel ends a machine of which nobody would look after the rest.
	setpriv --pdeathsig KILL -- qemu-system-x86_64 -nodefaults -no-user-config -display none \
		-machine q35,vmport=off,usb=off -accel "$accelerator" -cpu "$cpu" -smp "$cpus" -m "${memory}M" \
		-kernel "$kernel_dir/boot/vmlinuz-$release" -initrd "$work/initramfs" \
		-append "console=ttyS0 ignore_loglevel panic=-1 oops=panic mitigations=off random.trust_cpu=on$append" \
		-no-reboot -nic none ${clock[@]+"${clock[@]}"} \
		-chardev "file,id=console,path=$output/console.log,append=on" -serial chardev:console \
		-chardev "stdio,id=output,signal=off,logfile=$output/output,logappend=on" -serial chardev:output \
		-drive "file=$work/root.img,format=raw,if=none,id=root$root_drive" \
		-device virtio-blk-pci,drive=root \
		-fsdev "local,id=share,path=$output,security_model=none,multidevs=remap" \
		-device virtio-9p-pci,fsdev=share,mount_tag=share \
		"${qemu_drives[@]}" </dev/null 2>"$output/qemu.log" &
	qemu=$!
	cleanup_pid $qemu
}

# --- the verdict ------------------------------------------------------------------------------------

failed()
{
	keep=1
	note "FAILED: $*"
	note "--- the end of the guest's console"
	tail -n 30 "$output/console.log" >&2 || true
	[ ! -s "$output/qemu.log" ] || cat "$output/qemu.log" >&2
	note "console.log, output and results are in $output"
}

complaints()
{
	local allowed
	allowed=$(cat "$output/results/.expect" 2>/dev/null | tr '\n' '|')
	allowed=$(sed 's/^|*//; s/||*/|/g; s/|$//' <<<"$expect|$allowed")
	grep -aE "$COMPLAINTS" "$output/console.log" | { [ -n "$allowed" ] && grep -vE "$allowed" || cat; } || true
}

judge()
{
	local found
	if [ -n "$timed_out" ]; then
		failed "$name ran into its limit of $limit s"
		exit 124
	elif grep -aq 'Kernel panic' "$output/console.log"; then
		failed "$name: the guest panicked: $(grep -a 'Kernel panic' "$output/console.log" | head -n 1)"
		exit 125
	elif ! read -r status <"$output/results/.status"; then
		failed "$name: the guest ended without a result"
		exit 125
	elif [ "$status" -eq 77 ]; then
		exit 77
	elif [ "$status" -ne 0 ]; then
		failed "$name ended with status $status"
		exit "$status"
	fi
	found=$(complaints)
	if [ -n "$found" ]; then
		failed "$name: the kernel complained: $found"
		exit 123
	fi
}

if [ -n "$systemd" ]; then
	# Everything that systemd and the services say goes to the console.
	append+=' systemd.log_target=kmsg systemd.show_status=no printk.devkmsg=on fsck.mode=skip'
	make_systemd_root "$@"
else
	make_root "$@"
fi
make_initramfs
make_files
make_drives
rm -f "$output/console.log" "$output/output"
began=$EPOCHREALTIME
timed_out=
deadline=$((SECONDS + limit))
for ((boot = 0; boot < BOOTS_MAX; boot++)); do
	rm -f "$output/results/.again"
	launch
	wait_for "has_ended $qemu" $((deadline - SECONDS)) || timed_out=1
	CLEANUP_TERM_SECONDS=2 undo_pid $qemu
	[ -z "$timed_out" ] && [ -e "$output/results/.again" ] || break
done
awk -v a="$began" -v b="$EPOCHREALTIME" -v n="$name" -v k="$release" \
	'BEGIN { printf "guest: %s on %s, %.1f s\n", n, k, b - a }'
judge
