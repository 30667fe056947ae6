#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# rollcall, verb by verb: what it prints, how it exits, and what it tells somebody who is new to it.
set -u

src=${ROLL_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
work=$(mktemp -d "${TMPDIR:-/tmp}/roll-ctl-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
view=$work/view
out=$work/out
err=$work/err

n=0
failed=0
ok() {
	n=$((n + 1))
	echo "ok $n - $1"
}
not_ok() {
	n=$((n + 1))
	failed=1
	echo "not ok $n - $1"
	shift
	printf '%s\n' "$@" | sed 's/^/# /'
	head -n 40 "$out" "$err" | sed 's/^/# /'
}
# run CODE NAME COMMAND...: is the exit code right?
run() {
	want=$1
	name=$2
	shift 2
	"$@" > "$out" 2> "$err"
	code=$?
	if [ "$code" = "$want" ]; then
		ok "$name"
	else
		not_ok "$name" "exit $code, expected $want: $*"
	fi
}
# says FILE TEXT: does the output have it?
says() {
	if grep -qF -- "$2" "$1"; then
		ok "... and says: $2"
	else
		not_ok "... and says: $2"
	fi
}
lacks() {
	if grep -qF -- "$2" "$1"; then
		not_ok "... and does not say: $2"
	else
		ok "... and does not say: $2"
	fi
}
# json EXPRESSION: is it true of the output, called d?
json() {
	if python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$out" "$1" 2>> "$err"; then
		ok "... and JSON has: $1"
	else
		not_ok "... and JSON has: $1"
	fi
}
# Called through run, which shellcheck cannot see.
# shellcheck disable=SC2317
ctl() {
	rollcall --view "$view" "$@"
}
put() {
	cat > "$work/m/.new" && mv "$work/m/.new" "$work/m/$1"
}
sync_once() {
	rollcall-sync --manifests "$work/m" --view "$view" --once > "$work/sync.log" 2>&1
}

# --- first mistakes ---

run 2 "no verb is a mistake of usage" rollcall
says "$err" "a verb is missing"
says "$err" "rollcall explain NAME [TYPE]"
run 2 "so is an unknown verb" rollcall --view "$view" exlpain x
says "$err" '"exlpain" is not a verb'
run 2 "so is a missing name" rollcall --view "$view" explain
run 2 "so is a name that is none" rollcall --view "$view" explain a..b
says "$err" '"a..b" is not a domain name'
run 2 "so is a type that is not served" rollcall --view "$view" explain a.b WKS
says "$err" "expected one of ANY A NS"
run 2 "so is an option that the verb does not have" rollcall --view "$view" zones --pdns
for verb in status zones dump verify "explain a.b" "why-gone a.b"; do
	# Verb and argument are words of their own.
	# shellcheck disable=SC2086
	run 3 "$verb without a view is not readable" rollcall --view "$work/nowhere" $verb
	says "$err" "--view must name the directory that rollcall-sync was given"
done
touch "$work/file"
run 3 "a file is no view" rollcall --view "$work/file" status
says "$err" "is not a directory"
mkdir "$work/empty"
run 3 "an empty directory has no view yet" rollcall --view "$work/empty" status
says "$err" "rollcall-sync has not read its source to the end"
mkdir "$work/odd" "$work/odd/v1"
echo nonsense > "$work/odd/v1/data.mdb"
ln -s v1 "$work/odd/current"
run 3 "a foreign file is no view" rollcall --view "$work/odd" status
says "$err" "cannot be read"

# --- the example ---

mkdir "$work/m"
cp "$src"/pdns-conf/example/*.yaml "$work/m"
if ! sync_once; then
	not_ok "the example is in the view without findings" "$(cat "$work/sync.log")"
	echo "1..$n"
	exit 1
fi
ok "the example is in the view without findings"

run 0 "status is good" ctl status
says "$out" "2 served, 0 not served"
says "$out" "0 errors, 0 warnings"
says "$out" "nothing pending"
run 0 "status as JSON" ctl --json status
json 'd["good"] and d["complete"] and d["zonesServed"] == 2 and d["objects"]["DNSZoneClass"] == 1'

run 0 "zones are served" ctl zones
says "$out" "example.com"
says "$out" "default/example-net"
run 0 "zones as JSON" ctl --json zones
json '[z["domain"] for z in d] == ["example.com", "example.net"] and all(z["served"] for z in d)'

for zone in example.com example.net; do
	run 0 "dump $zone" ctl dump $zone
	cp "$out" "$work/$zone.zone"
	run 0 "... is a zone for named-checkzone" named-checkzone -k ignore $zone "$work/$zone.zone"
	lacks "$out" "ignor"
	run 0 "... and for ldns-read-zone" ldns-read-zone "$work/$zone.zone"
	if [ "$(grep -vc '^;' "$work/$zone.zone")" = "$(wc -l < "$out")" ]; then
		ok "... which reads every record"
	else
		not_ok "... which reads every record"
	fi
	if [ "$(grep -v '^;' "$work/$zone.zone" | head -n 1 | cut -f 4)" = SOA ]; then
		ok "... the SOA first"
	else
		not_ok "... the SOA first" "$(cat "$work/$zone.zone")"
	fi
done
cat "$work"/*.zone > "$out"
for type in A AAAA CNAME TXT MX SRV CAA NS SOA PTR TLSA HTTPS SVCB TYPE65401; do
	says "$out" "	IN	$type	"
done
says "$out" "; ALIAS www.example.com."
run 0 "dump --pdns has ALIAS as PowerDNS has it" ctl --pdns dump example.com
says "$out" "	IN	ALIAS	www.example.com."
lacks "$out" TYPE65401
run 0 "dump of all zones" ctl dump
says "$out" "; zone example.com of DNSZone default/example-com"
says "$out" "; zone example.net of DNSZone default/example-net"
run 0 "dump as JSON" ctl --json dump
json 'len(d) == 2 and d[0]["records"][0]["type"] == "SOA"'
run 1 "dump of a zone that is not there" ctl dump example.org
says "$err" "no DNSZone has the domain example.org"

run 0 "explain an answer" ctl explain WWW.example.com. a
says "$out" "www.example.com A: answered"
says "$out" "192.0.2.11  <- default/www-a"
says "$out" "DNSZone default/example-com  answers"
run 0 "explain as JSON" ctl --json explain www.example.com A
json 'd["result"] == "answer" and sorted(r["content"] for r in d["records"] if r["answers"]) == ["192.0.2.10", "192.0.2.11"]'
json 'd["objects"][0]["serves"] and d["objects"][0]["verdict"] == "Served"'
run 0 "explain a wildcard" ctl explain x.y.apps.example.com
says "$out" "answered by the wildcard *.apps.example.com"
run 0 "explain a CNAME for another type" ctl explain blog.example.com AAAA
says "$out" "CNAME www.example.com."
run 0 "explain a delegation" ctl explain host.lab.example.com
says "$out" "delegated at lab.example.com"
run 0 "explain what the class makes" ctl explain example.net SOA
says "$out" "<- the zone's class"
run 0 "explain an ALIAS" ctl explain example.com A
says "$out" "needs expand-alias=yes"
run 1 "explain a type that the name lacks" ctl explain www.example.com TXT
says "$out" "the name lacks this type"
run 1 "explain an empty non-terminal" ctl explain _tcp.example.com
says "$out" "names below it"
run 1 "explain a name that is not there" ctl explain nope.example.com
says "$out" "no such name (NXDOMAIN)"
run 1 "explain a name in no zone" ctl explain www.example.org
says "$out" "REFUSED"
says "$out" "no DNSZone has this domain"

run 0 "the view is what the objects mean" ctl verify
says "$out" "the view is what the objects mean"
mkdir "$work/tmp"
run 0 "verify as JSON" env TMPDIR="$work/tmp" rollcall --view "$view" --json verify
json 'd["good"] and d["differences"] == [] and d["sweepPending"] == 0'
if [ -z "$(ls -A "$work/tmp")" ]; then
	ok "verify leaves nothing behind"
else
	not_ok "verify leaves nothing behind" "$(ls -A "$work/tmp")"
fi
run 3 "verify without room to work says so" env TMPDIR="$work/nowhere" rollcall --view "$view" verify
says "$err" "TMPDIR"

# --- who has it, who had it ---

put zz-rivals.yaml <<'END'
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSRecordSet
metadata: {name: rival, namespace: default, creationTimestamp: "2020-01-01T00:00:00Z"}
spec: {dnsZoneRef: {name: example-com}, recordType: A, records: [{name: hello, a: {content: 192.0.2.99}}]}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSRecordSet
metadata: {name: cname, namespace: default}
spec: {dnsZoneRef: {name: example-com}, recordType: CNAME, records: [{name: shop, cname: {content: www.example.com.}}]}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSRecordSet
metadata: {name: early, namespace: default}
spec: {dnsZoneRef: {name: later}, recordType: A, records: [{name: www, a: {content: 192.0.2.7}}, {name: soon.example.com., a: {content: 192.0.2.7}}]}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSRecordSet
metadata: {name: broken, namespace: default}
spec: {dnsZoneRef: {name: example-com}, recordType: A, records: [{name: broken, a: {content: 192.0.2.777}}, {name: fine, a: {content: 192.0.2.8}}]}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSZone
metadata: {name: second, namespace: default}
spec: {domainName: example.net, dnsZoneClassName: public}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSZone
metadata: {name: classless, namespace: default}
spec: {domainName: example.org, dnsZoneClassName: nobody}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSRecordSet
metadata: {name: odd, namespace: default}
spec: {dnsZoneRef: {name: example-com}, recordType: TXT, records: [{name: odd, txt: {content: "\e[31mred\a"}}]}
END
sync_once
run 0 "explain who lost" ctl explain hello.example.com
says "$out" "192.0.2.99  <- default/rival"
says "$out" "default/hello A"
says "$out" "NotOwner: default/rival has A here and is older"
run 0 "explain a conflict" ctl explain shop.example.com A
says "$out" "Conflict"
run 1 "explain who waits for a zone" ctl explain soon.example.com
says "$out" "default/early  waits for its DNSZone default/later"
run 1 "explain a broken entry" ctl explain broken.example.com
says "$out" "default/broken  its entry cannot be served, see findings"
says "$out" "spec.records[0].a.content"
run 0 "explain a good entry beside it" ctl explain fine.example.com
lacks "$out" "spec.records[0]"
run 1 "explain why a zone is not served" ctl explain www.example.org
says "$out" "not served"
run 1 "zones says so too" ctl zones
says "$out" "default/classless"
says "$out" "default/second"
run 1 "status says so too" ctl status
says "$out" "2 served, 2 not served"
says "$out" "example.net: an older DNSZone has the domain"
says "$out" "example.org: its class is not there"
run 1 "dump of a zone that is not served" ctl dump example.org
says "$err" "is not served"
run 0 "explain escapes foreign bytes" ctl explain odd.example.com
if LC_ALL=C grep -q "$(printf '[\033\007]')" "$out"; then
	not_ok "... no control byte is printed"
else
	ok "... no control byte is printed"
fi
run 0 "verify knows losers and waiting ones" ctl verify

rm "$work/m/hello.yaml" "$work/m/zz-rivals.yaml"
sync_once
run 0 "why-gone tells what proved it" ctl why-gone hello.example.com
says "$out" "default/hello"
says "$out" "default/rival"
run 0 "why-gone as JSON" ctl --json why-gone hello.example.com
json 'len(d) == 2 and all(r["kind"] == "DNSRecordSet" for r in d)'
run 1 "explain tells it too" ctl explain hello.example.com
says "$out" "removed"
run 1 "why-gone of what never was" ctl why-gone never.example.com
run 0 "the view is right after all of this" ctl verify

# --- check ---

run 0 "check finds nothing in the example" rollcall check "$src/pdns-conf/example"
says "$out" "0 errors, 0 warnings"
run 0 "check as JSON" rollcall --json check "$src/pdns-conf/example"
json 'd["findings"] == [] and d["errors"] == 0 and d["objects"] > 20'

mkdir "$work/c"
cat > "$work/c/a.yaml" <<'END'
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSZoneClass
metadata: {name: public}
spec: {controllerName: powerdns, nameServerPolicy: {mode: Static, static: {servers: [ns1.example.net]}}}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSZone
metadata: {name: z}
spec: {domainName: example.com, dnsZoneClassName: public}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSZone
metadata: {name: zz}
spec: {domainName: example.com, dnsZoneClassName: public}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSZone
metadata: {name: deep}
spec: {domainName: sub.example.com, dnsZoneClassName: public}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSZone
metadata: {name: lost}
spec: {domainName: example.org, dnsZoneClassName: missing}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
END
cat > "$work/c/b.yaml" <<'END'
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSRecordSet
metadata: {name: bad}
spec:
  dnsZoneRef: {name: z}
  recordType: A
  records:
    - {name: www, a: {content: 300.1.1.1}}
    - {name: www, a: {content: 192.0.2.1}}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSRecordSet
metadata: {name: rival}
spec: {dnsZoneRef: {name: z}, recordType: A, records: [{name: www, a: {content: 192.0.2.2}}]}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSRecordSet
metadata: {name: shadow}
spec: {dnsZoneRef: {name: z}, recordType: A, records: [{name: x.sub, a: {content: 192.0.2.3}}]}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSRecordSet
metadata: {name: waits}
spec: {dnsZoneRef: {name: nowhere}, recordType: A, records: [{name: x, a: {content: 192.0.2.4}}]}
---
apiVersion: dns.networking.miloapis.com/v1alpha1
kind: DNSZone
metadata: {name: z}
spec: {domainName: example.com, dnsZoneClassName: public}
END
printf 'a: [1,\n' > "$work/c/c.yaml"
run 1 "check finds what is wrong" rollcall check "$work/c"
says "$out" "b.yaml:1: error: DNSRecordSet default/bad: spec.records[0].a.content is \"300.1.1.1\"; expected an IPv4 address"
says "$out" "default/rival: www.example.com A is not served: default/bad has A there"
says "$out" "[NotOwner]"
says "$out" "default/shadow: x.sub.example.com is never answered from here"
says "$out" "spec.dnsZoneRef.name names the DNSZone default/nowhere, which is not among these objects"
says "$out" "DNSZone default/zz: example.com is not served from here: DNSZone default/z has it"
says "$out" "DNSZone default/lost: example.org is not served"
says "$out" "[DuplicateObject]"
says "$out" "c.yaml"
says "$out" "1 objects of other kinds passed over"
run 1 "check of a file that is not there" rollcall check "$work/none.yaml"
says "$out" "No such file"

echo "1..$n"
exit $failed
