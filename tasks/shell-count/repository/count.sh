#!/usr/bin/env bash
# count.sh FILE…: counts lines.
wc -l $@
