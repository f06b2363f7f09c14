# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154
# The part of run.sh that makes the root file system of a guest with systemd: Debian, what
# `meson install` installs, the kernel's modules, and a service that runs the script.

SYSTEMD_MODULES='autofs4 9p 9pnet_virtio nvme loop fuse ublk_drv'

# The modules that NAME... need, where modprobe looks for them.
add_module_tree()
{
	local module path
	for module in "$@"; do
		module_paths "$module" >"$work/paths" || continue
		while read -r path; do
			[ -n "$path" ] || continue
			mkdir -p "$root/lib/modules/$release/${path%/*}"
			cp "$modules/$path" "$root/lib/modules/$release/$path"
		done <"$work/paths"
	done
	cp "$modules"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$release/"
	depmod -b "$root" "$release" 2>"$work/log" || die "depmod: $(cat "$work/log")"
}

write_systemd_units()
{
	local etc=$root/etc/systemd/system unit
	echo guest >"$root/etc/hostname"
	echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id"
	echo '/dev/vda / ext4 defaults 0 0' >"$root/etc/fstab"
	echo nvme >"$root/etc/modules-load.d/guest.conf"
	mkdir -p "$root/etc/systemd/journald.conf.d" "$etc/multi-user.target.wants"
	printf '[Journal]\nStorage=volatile\nReadKMsg=no\nForwardToKMsg=yes\nMaxLevelKMsg=info\nRateLimitIntervalSec=0\n' \
		>"$root/etc/systemd/journald.conf.d/guest.conf"
	# What takes its time, and nobody here needs.
	for unit in getty.target serial-getty@.service timers.target systemd-networkd.service \
		systemd-timesyncd.service systemd-logind.service systemd-update-utmp.service \
		systemd-update-utmp-runlevel.service systemd-random-seed.service systemd-pstore.service \
		systemd-user-sessions.service e2scrub_reap.service proc-sys-fs-binfmt_misc.automount; do
		ln -sf /dev/null "$etc/$unit"
	done
	cat >"$etc/guest.service" <<-UNIT
		[Unit]
		Description=The script of the run
		[Service]
		ExecStart=/zswapd/tests/guest/systemd-init.sh
		StandardOutput=tty
		StandardError=tty
		TTYPath=/dev/ttyS1
		OOMScoreAdjust=-900
		TimeoutStopSec=5
	UNIT
	ln -s ../guest.service "$etc/multi-user.target.wants/guest.service"
}

make_systemd_root()
{
	# shellcheck disable=SC2034
	local program more_kib=65536
	mkdir -p "$root"
	tar -x -f "$debian" -C "$root"
	DESTDIR=$root meson install -C "$build" --no-rebuild --quiet >"$work/log" 2>&1 ||
		die "meson install: $(tail -n 3 "$work/log")"
	for program in "${BUILT[@]}"; do
		case $program in
		daemon/* | ctl/*) ;;
		*) cp -L "$build/$program" "$root/usr/bin/" || die "$build has no $program" ;;
		esac
	done
	mkdir -p "$root/share" "$root/zswapd/tests"
	ln -s share/results "$root/results"
	ln -s share/files "$root/files"
	cp -r "$here" "$here/../lib" "$root/zswapd/tests/"
	install -m 755 "$script" "$root/zswapd/tests/guest/$name.sh"
	# shellcheck disable=SC2086
	add_module_tree $SYSTEMD_MODULES
	write_systemd_units
	{
		printf 'GUEST_LIMIT=%q\nGUEST_COMMAND=(/zswapd/tests/guest/%q' "$limit" "$name.sh"
		[ $# -eq 0 ] || printf ' %q' "$@"
		printf ')\n'
	} >"$root/etc/guest.conf"
	make_image
}
