#!/bin/sh
# https_test.sh SERVER CLIENT: the two examples talk to each other, and a signal ends the server.
set -eu
command -v openssl >/dev/null || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key.pem" -out "$work/chain.pem" \
  -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
"$1" 0 "$work/chain.pem" "$work/key.pem" >"$work/out" &
server=$!
trap 'kill -9 $server 2>/dev/null || true; rm -rf "$work"' EXIT
tries=0
until grep -q '^port' "$work/out"; do
  tries=$((tries + 1))
  [ $tries -lt 600 ] || { echo "the server does not start" >&2; exit 1; }
  sleep 0.1
done
port=$(sed -n 's/^port //p' "$work/out")

said=$("$2" --trust "$work/chain.pem" localhost "$port" /first /second)
expected='200
You asked for /first
200
You asked for /second'
[ "$said" = "$expected" ] || { printf 'the client said:\n%s\n' "$said" >&2; exit 1; }
if "$2" localhost "$port" / 2>"$work/refused"; then
  echo "a certificate that nobody vouches for was trusted" >&2
  exit 1
fi
grep -q 'not trusted' "$work/refused" || { cat "$work/refused" >&2; exit 1; }

kill -TERM $server
wait $server
tail -n 1 "$work/out" | grep -qx end
