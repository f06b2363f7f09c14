#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# In a guest with systemd: the service that runs the script of the run, at every boot.  The script's
# status goes to /results/.status, unless it has asked for another boot; see lib-systemd.sh.
export HOME=/root TERM=dumb LC_ALL=C
. /etc/guest.conf
stty -F /dev/ttyS1 -opost

mount -t 9p -o trans=virtio,version=9p2000.L,msize=131072,cache=none share /share || {
	echo "init: no results can be handed over"
	/sbin/poweroff -ff
}
GUEST_BOOT=$(($(cat /results/.boot 2>/dev/null || echo 0) + 1))
echo $GUEST_BOOT >/results/.boot

# As in init.sh.
echo 30 >/proc/sys/kernel/hung_task_timeout_secs
echo 2 >/proc/sys/kernel/hung_task_check_interval_secs
guard $((GUEST_LIMIT > 80 ? GUEST_LIMIT - 40 : GUEST_LIMIT / 2)) &

cd /root || exit
ZSWAPD=$(command -v zswapd) ZSWAPCTL=$(command -v zswapctl)
export GUEST_BOOT ZSWAPD ZSWAPCTL PAGELOAD=/usr/bin/pageload SLOTS=/usr/bin/slots
status=0
"${GUEST_COMMAND[@]}" || status=$?
[ $status -ne 0 ] || [ ! -e /results/.again ] || exit 0
echo $status >/results/.status
sync
/sbin/poweroff -ff
