#!/bin/sh
# Removes the profile. dpkg passes "remove", rpm the number of versions that stay: 0.
set -e

profile=/etc/apparmor.d/holdfast
case $1 in
remove | 0)
	if [ -e "$profile" ]; then
		if grep -q '^Y' /sys/module/apparmor/parameters/enabled 2>/dev/null && command -v apparmor_parser >/dev/null; then
			apparmor_parser --remove "$profile" || true
		fi
		rm -f "$profile" /var/cache/apparmor/*/holdfast
	fi
	;;
esac
