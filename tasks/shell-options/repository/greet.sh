#!/usr/bin/env bash
# greet.sh [--name VALUE] [--loud]: prints a greeting.
name=world
while [ $# -gt 0 ]; do
    case $1 in
    --name) name=$2; shift ;;
    esac
    shift
done
echo "Hello, $name"
