#!/usr/bin/env bash
# Copies each file given as an argument to FILE.bak.
for file in $*; do
    cp $file $file.bak
done
