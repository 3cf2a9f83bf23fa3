#!/bin/sh
# Print the path of the newest usable Python: CPython 3.11 or newer, a final release, whose venv and ensurepip work.
# Without one, print the line that installs it, and fail.
#
# Every candidate is run, not only looked at: a pyenv shim on PATH may exist and yet refuse to start.

check='
import sys
v = sys.version_info
if v < (3, 11) or v.releaselevel != "final" or sys.implementation.name != "cpython":
    sys.exit(1)
print(v.major * 1000000 + v.minor * 1000 + v.micro, end=" ")
import ensurepip, venv
print(ensurepip.version())
'

best=""
best_version=0
without_venv=""  # a good Python that lacks only the venv module

consider() {
    [ -x "$1" ] || return 0
    answer=$("$1" -c "$check" 2>/dev/null)
    status=$?
    version=${answer%% *}
    if [ "$status" -eq 0 ]; then
        if [ "$version" -gt "$best_version" ]; then
            best=$1
            best_version=$version
        fi
    elif [ -n "$version" ]; then
        without_venv=$1
    fi
    return 0
}

saved_ifs=$IFS
IFS=:
for folder in $PATH; do
    [ -n "$folder" ] || folder=.
    IFS=$saved_ifs
    for candidate in "$folder"/python3.[1-9][0-9] "$folder/python3" "$folder/python"; do
        consider "$candidate"
    done
    IFS=:
done
IFS=$saved_ifs
for candidate in "${PYENV_ROOT:-${HOME:-}/.pyenv}"/versions/*/bin/python3; do
    consider "$candidate"
done

if [ -n "$best" ]; then
    echo "$best"
    exit 0
fi

sudo="sudo "
[ "$(id -u)" -ne 0 ] || sudo=""
if command -v apt-get >/dev/null 2>&1; then
    package=python3-venv
    for minor in 11 12 13 14 15 16 17 18 19; do
        if apt-cache show "python3.$minor-venv" >/dev/null 2>&1; then
            package=python3.$minor-venv
        fi
    done
    if [ -n "$without_venv" ]; then
        package=$("$without_venv" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')
    fi
    line="${sudo}apt-get update && ${sudo}apt-get install -y $package"
elif command -v dnf >/dev/null 2>&1; then
    line="${sudo}dnf install -y python3.12"
elif command -v brew >/dev/null 2>&1; then
    line="brew install python"
else
    line="(install Python 3.11 or newer, with its venv module, from your system's packages or from python.org)"
fi
echo "No usable Python 3.11 or newer with a working venv module. To install one: $line" >&2
exit 1
