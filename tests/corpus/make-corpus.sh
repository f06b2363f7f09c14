#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Makes a corpus: resident anonymous pages of real programs, in OUTPUT.
# usage: make-corpus.sh OUTPUT [MIB]     (CORPUS_CAPTURE names the binary, else build/ is searched)
#
# Each program gets a share of MIB by its weight; the shares of programs that are not installed go
# to the others.  sqlite3, cc1 and perl must be there.  An OUTPUT that is big enough is left alone.
set -euo pipefail
export LC_ALL=C

out=${1:?usage: make-corpus.sh OUTPUT [MIB]}
mib=${2:-96}
here=$(cd "$(dirname "$0")" && pwd)
capture=${CORPUS_CAPTURE:-$here/../../build/tests/corpus/corpus-capture}

if [ -f "$out" ] && [ "$(stat -c %s "$out")" -ge $((mib * 1048576 * 9 / 10)) ]; then
	echo "$out is there already"
	exit 0
fi
[ -x "$capture" ] || {
	echo "make-corpus: no corpus-capture at $capture: build it, or set CORPUS_CAPTURE" >&2
	exit 1
}
capture=$(realpath "$capture")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
part=$tmp/corpus.pages

# Debian's own program before anything else of that name.
find_program()
{
	local p
	for p in "/usr/bin/$1" "/usr/sbin/$1" "$(command -v "$1" || true)"; do
		[ -x "$p" ] && echo "$p" && return
	done
	return 1
}

# --- inputs --------------------------------------------------------------------------------------
# Made by arithmetic alone, so that every machine builds the same memory.

sqlite_input()
{
	cat <<'SQL'
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city TEXT, since TEXT, credit REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120000)
INSERT INTO customer SELECT i,
  char(65 + i * 7 % 26) || substr('anderenolisamiuretokalo', 1 + i * 13 % 17, 3 + i % 5) || ' ' ||
  char(65 + i * 11 % 26) || substr('stromanbergeldwicksonley', 1 + i * 31 % 16, 4 + i % 4),
  substr('Lyon Oslo Riga Bonn Turin Porto Gent Graz Cork Vigo', 1 + 5 * (i * 17 % 10), 5),
  date('1990-01-01', (i * 37 % 12000) || ' days'), (i * 7919 % 1000003) / 100.0 FROM n;
CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INT, item TEXT, at TEXT, price REAL, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
INSERT INTO purchase SELECT i, 1 + i * 104729 % 120000, printf('item-%05d', i * 31 % 9973),
  datetime('2015-01-01 08:00:00', (i * 977 % 300000000) || ' seconds'),
  round((i * 104729 % 99991) / 37.0, 2),
  CASE WHEN i % 5 = 0 THEN 'delivered to the neighbour, signed ' || hex(i * 2654435761) END FROM n;
CREATE INDEX purchase_customer ON purchase(customer, at);
CREATE INDEX customer_name ON customer(name);
SELECT count(*) FROM customer c JOIN purchase p ON p.customer = c.id WHERE c.city = 'Oslo';
.print memory-is-built
SQL
}

python_input()
{
	cat <<'PY'
import ast, glob, json, os, sys, datetime, random, re
random.seed(7)
std = sorted(glob.glob(os.path.dirname(os.__file__) + '/[a-t]*.py'))[:60]
sources = [open(p, encoding='utf-8').read() for p in std]
trees = [ast.parse(s) for s in sources[:24]]
words = {}
for n, s in enumerate(sources):
    for w in re.findall(r'\w+', s):
        words.setdefault(w, []).append(n)
day = datetime.date(2001, 1, 1)
people = [{'id': i, 'name': random.choice('Ann Bo Cai Dee Eli Fay'.split()) + str(i % 977),
           'born': day + datetime.timedelta(days=i * 37 % 9000), 'score': random.random(),
           'tags': random.sample(['red', 'green', 'blue', 'old', 'new'], 2)} for i in range(40000)]
texts = [json.dumps(p, default=str) for p in people]
back = [json.loads(t) for t in texts[:15000]]
table = {(i, i * 31 % 1009): float(i) for i in range(60000)}
print('memory-is-built', flush=True)
sys.stdin.read()
PY
}

perl_input()
{
	cat <<'PERL'
$| = 1;
my (%index, @rows, %count);
for my $i (1 .. 40000) {
	my $name = join '-', map { chr(97 + ($i * $_ + $_ ** 3) % 26) x (1 + $i % 3) } 3, 7, 11, 5;
	push @rows, { id => $i, name => $name, value => $i * 1.37, list => [$i % 7, $i % 11, "v$i"] };
	push @{ $index{ substr $name, 0, 3 } }, $rows[-1];
	$count{ sprintf '%s/%d', $name, $i % 50 }++;
}
my $log = join "\n", map { sprintf '2024-%02d-%02d %02d:%02d:%02d host app[%d]: request %d took %.3f ms',
	1 + $_ % 12, 1 + $_ % 28, $_ % 24, $_ % 60, $_ * 7 % 60, 1000 + $_ % 9, $_, $_ * 31 % 977 / 7 } 1 .. 60000;
my @fields = map { [split] } split /\n/, substr $log, 0, 1500000;
print "memory-is-built\n";
<STDIN>;
PERL
}

awk_program='BEGIN {
	srand(3);
	for (i = 0; i < 70000; i++) {
		key = sprintf("%s-%d", substr("northsoutheastwestupdown", 1 + i % 20, 4), i * 31 % 100003);
		sum[key] += i * 0.25; last[key] = "line " i " of the report"; seen[i % 5000, key] = i
	}
	print "memory-is-built"; fflush(); getline line
}'

# One function a line number, of several shapes; the marker is the label of one in the middle.
c_input()
{
	echo '#include <stdio.h>'
	echo '#include <stdlib.h>'
	echo '#include <string.h>'
	awk 'BEGIN { for (i = 0; i < 1800; i++) {
		n = i == 1700 ? "memory_is_built" : "f" i;
		printf "struct s%d { int id; double w[%d]; char name[%d]; struct s%d *next; };\n", i, 1 + i % 7, 8 + i % 40, i;
		printf "int %s(struct s%d *p, int n) {\n", n, i;
		printf "\tint sum = %d;\n\tfor (int k = 0; k < n; k++) {\n", i * 37 % 1009;
		printf "\t\tif (p->w[k %% %d] > %d.5) sum += k * %d; else sum ^= p->id << %d;\n", 1 + i % 7, i % 90, i % 77 + 1, i % 13;
		printf "\t\tswitch (sum %% 5) { case 0: sum += strlen(p->name); break; case 3: printf(\"%s %%d\\n\", sum); break; default: sum--; }\n", n;
		if (i % 3 == 0) printf "\t\tif (p->next) p = p->next; else return sum;\n";
		if (i % 4 == 1) printf "\t\tsnprintf(p->name, sizeof p->name, \"n%%d of %d\", sum);\n", i;
		printf "\t}\n\treturn sum%s;\n}\n", ((i > 8 && i % 5 == 0 && i != 1707) ? " + (n > 0 ? f" i - 7 "(0, n - 1) : 0)" : "");
	} }'
}

node_input()
{
	cat <<'JS'
const rows = [], byKey = new Map(), classes = {};
class Point { constructor(x, y, label) { this.x = x; this.y = y; this.label = label; } }
for (let i = 0; i < 90000; i++) {
  const o = { id: i, user: 'user' + (i * 31 % 9973), at: new Date(1.6e12 + i * 1e6).toISOString(),
    point: new Point(i * 0.37, i % 360, 'p' + i % 77), tags: ['a' + i % 5, 'b' + i % 9] };
  rows.push(o); byKey.set(o.user + i % 13, o);
}
const text = rows.slice(0, 30000).map(r => JSON.stringify(r));
const back = text.slice(0, 12000).map(t => JSON.parse(t));
const fns = [];
for (let i = 0; i < 1500; i++) fns.push(new Function('a', 'b', `let s = ${i}; for (const k in a) s += b * ${i % 7}; return s;`));
for (const f of fns) f({ x: 1 }, 2);
const nums = Float64Array.from({ length: 200000 }, (_, i) => Math.sin(i));
console.log('memory-is-built');
process.stdin.resume();
JS
}

# The append-only file is plain protocol: *ARGC, then $LENGTH and the bytes of each argument.
redis_input()
{
	awk 'function cmd(n,   i) { printf "*%d\r\n", n; for (i = 1; i <= n; i++) printf "$%d\r\n%s\r\n", length(a[i]), a[i] }
	BEGIN { a[1] = "SELECT"; a[2] = "0"; cmd(2);
	for (i = 0; i < 60000; i++) {
		a[1] = "SET"; a[2] = "session:" i * 7919 % 1000003;
		a[3] = sprintf("{\"user\":%d,\"ip\":\"10.%d.%d.%d\",\"cart\":[%d,%d],\"lang\":\"%s\"}", i, i % 200, i * 7 % 250, i * 13 % 250, i * 31 % 9999, i % 97, substr("endefrsvplit", 1 + 2 * (i % 6), 2)); cmd(3);
		if (i % 2 == 0) { a[1] = "HSET"; a[2] = "user:" i % 20000; a[3] = "field" i % 9; a[4] = "value " i * 17 % 10007; cmd(4) }
		if (i % 3 == 0) { a[1] = "ZADD"; a[2] = "rank:" i % 50; a[3] = i * 7 % 5003; a[4] = "player" i % 30011; cmd(4) }
		if (i % 4 == 0) { a[1] = "RPUSH"; a[2] = "queue:" i % 300; a[3] = "job " i " retry " i % 5; cmd(3) }
	} }'
}

# --- programs ------------------------------------------------------------------------------------

sqlite_input >"$tmp/in.sql"
python_input >"$tmp/prog.py"
perl_input >"$tmp/prog.pl"
node_input >"$tmp/prog.js"
cc1=$(gcc -print-prog-name=cc1 2>/dev/null || true)
c_input >"$tmp/prog.c"

# name, weight, must be there, the program
declare -A program weight
names=()
add()
{
	local name=$1 path=$4
	if [ -n "$path" ] && [ -x "$path" ]; then
		names+=("$name")
		program[$name]=$path
		weight[$name]=$2
	elif [ "$3" = needed ]; then
		echo "make-corpus: $name is missing; it is needed (Debian packages sqlite3, gcc, perl-base)" >&2
		exit 1
	else
		echo "make-corpus: $name is not installed, left out"
	fi
}
add sqlite3 20 needed "$(find_program sqlite3)"
add cc1 20 needed "$cc1"
add perl 14 needed "$(find_program perl)"
add python3 18 optional "$(find_program python3)"
add node 12 optional "$(find_program node)"
add redis-server 12 optional "$(find_program redis-server)"
add mawk 6 optional "$(find_program mawk)"
add xz 3 optional "$(find_program xz)"
total=0
for name in "${names[@]}"; do
	total=$((total + weight[$name]))
done

run()
{
	local name=$1 pages=$2 p=${program[$1]}
	local take=("$capture" --out "$part" --label "$name" --pages "$pages" --timeout 120)
	local mark=(--marker memory-is-built)
	case $name in
	sqlite3) "${take[@]}" "${mark[@]}" --stdin "$tmp/in.sql" -- "$p" ;;
	python3) "${take[@]}" "${mark[@]}" --file "$tmp/prog.py" -- "$p" -I prog.py ;;
	perl) "${take[@]}" "${mark[@]}" --file "$tmp/prog.pl" -- "$p" prog.pl ;;
	node) "${take[@]}" "${mark[@]}" --file "$tmp/prog.js" -- "$p" prog.js ;;
	mawk) "${take[@]}" "${mark[@]}" -- "$p" "$awk_program" ;;
	cc1)
		gcc -E -P "$tmp/prog.c" -o "$tmp/prog.i"
		"${take[@]}" --marker memory_is_built: --file "$tmp/prog.i" -- \
			"$p" -quiet -fpreprocessed -O1 -fno-toplevel-reorder -o - prog.i
		;;
	redis-server)
		redis_input >"$tmp/appendonly.aof"
		"${take[@]}" --marker 'ready to accept connections' --file "$tmp/appendonly.aof" -- "$p" \
			--port 0 --unixsocket redis.sock --save '' --appendonly yes \
			--aof-use-rdb-preamble no --daemonize no
		;;
	xz)
		head -c 6000000 "$cc1" >"$tmp/in.xz"
		"${take[@]}" --fed --stdin "$tmp/in.xz" -- "$p" -T1 -6 -c
		;;
	esac
}

for name in "${names[@]}"; do
	run "$name" $((mib * 256 * weight[$name] / total))
done
mkdir -p "$(dirname "$out")"
mv "$part" "$out"
"$capture" --stat "$out"
