#!/usr/bin/env bash
# rotate.sh FILE: moves FILE to FILE.1, FILE.1 to FILE.2 and so on.
file=$1
mv "$file" "$file.1"
mv "$file.1" "$file.2"
: > "$file"
