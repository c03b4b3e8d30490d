#!/bin/sh
# Judges the files it is given, batch scripts and SkyPilot tasks. Ends with 1 when one is refused or cannot be read; what
# was not judged is told and passes.
set -u
worst=0
for file in "$@"; do
  case $file in
    *.sbatch) kind=--slurm ;;
    *) kind=--skypilot ;;
  esac
  code=0
  said=$(neurarch-gate judge "$kind" "$file" --fail-open 2>&1) || code=$?
  if [ "$code" -ne 0 ]; then
    worst=1
    printf '%s\n%s\n\n' "$file" "$said"
  fi
done
exit "$worst"
