#!/bin/sh
# usage: html.sh MANDOC-OR-GROFF PAGE OUT
# A manual page as HTML, whose references to other pages of hone are links.
set -eu
export LC_ALL=C.UTF-8

# groff's own HTML needs more programs: what it prints for typewriters says as well what is bold and what is underlined
typewriter() {
    printf '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>%s</title></head><body><pre>\n' "$(basename "$2")"
    "$1" -m man -T utf8 -P -c "$2" | sed -E 's/(.)\x08\1/\x01\1\x02/g; s/_\x08(.)/\x03\1\x04/g; s/\x02\x01//g; s/\x04\x03//g
        s/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s#\x01#<b>#g; s#\x02#</b>#g; s#\x03#<i>#g; s#\x04#</i>#g'
    printf '</pre></body></html>\n'
}

case $1 in
*mandoc) "$1" -T html -O style= "$2" ;;
*) typewriter "$1" "$2" ;;
esac | sed -E 's#(<b>)?\b(hone(-[a-z]+)*)(</b>)?\(([17])\)#<a href="\2.\5.html">\1\2\4(\5)</a>#g' >"$3"
