/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/tempview.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dns/rdata.h"

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "# tempview: %s\n", what);
	abort();
}

static int64_t wall_ms(void *ctx)
{
	return ((struct tempview *)ctx)->wall_ms;
}

void tempview_init(struct tempview *tv)
{
	memset(tv, 0, sizeof *tv);
	snprintf(tv->dir, sizeof tv->dir, "%s/roll-view-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	must(mkdtemp(tv->dir) != NULL, "no temporary folder");
	tv->wall_ms = INT64_C(1000) * 1000;
	tv->clock = (struct roll_clock){wall_ms, wall_ms, tv};
}

void tempview_remove_all(const char *dir)
{
	DIR *handle = opendir(dir);
	struct dirent *entry;

	while (handle && (entry = readdir(handle))) {
		char path[512];
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		if (!lstat(path, &st) && S_ISDIR(st.st_mode))
			tempview_remove_all(path);
		else
			unlink(path);
	}
	if (handle)
		closedir(handle);
	rmdir(dir);
}

void tempview_close(struct tempview *tv)
{
	roll_writer_close(tv->writer);
	tv->writer = NULL;
}

void tempview_fini(struct tempview *tv)
{
	tempview_close(tv);
	tempview_remove_all(tv->dir);
}

bool tempview_open(struct tempview *tv)
{
	const struct roll_writer_conf conf = {tv->dir, "ours", &tv->clock, 0};
	struct roll_err err = {.code = ROLL_OK};
	bool is_fresh;

	if (roll_writer_open(&conf, &tv->writer, &is_fresh, &err)) {
		fprintf(stderr, "# %s: %s\n", err.where, err.text);
		abort();
	}
	return is_fresh;
}

void tempview_make(struct tempview *tv)
{
	struct roll_txn *txn;

	must(tempview_open(tv), "the view is not new");
	txn = tempview_begin(tv);
	roll_txn_set_complete(txn, tv->wall_ms);
	tempview_commit(txn);
	must(!roll_writer_finish(tv->writer, NULL), "the view cannot be finished");
}

struct roll_txn *tempview_begin(struct tempview *tv)
{
	struct roll_err err;
	struct roll_txn *txn;

	if (roll_txn_begin(tv->writer, &txn, &err)) {
		fprintf(stderr, "# %s\n", err.text);
		abort();
	}
	return txn;
}

void tempview_commit(struct roll_txn *txn)
{
	struct roll_err err;

	if (roll_txn_commit(txn, &err)) {
		fprintf(stderr, "# %s\n", err.text);
		abort();
	}
}

struct roll_name tempview_name(const char *text)
{
	struct roll_name name;

	must(!roll_name_parse(roll_str_c(text), &name, NULL), text);
	return name;
}

static struct roll_object_row row_of(enum roll_row_kind kind, const char *key, int64_t created_s)
{
	return (struct roll_object_row){
		.kind = kind,
		.key = roll_str_c(key),
		.uid = roll_str_c("uid"),
		.created_s = created_s,
		.generation = 1,
	};
}

void tempview_put_class(struct roll_txn *txn, const char *name, const char *controller,
			const char *nameservers, uint32_t ttl)
{
	struct roll_object_row row = row_of(ROLL_ROW_CLASS, name, 1);
	struct roll_class_row cls = {
		.controller = roll_str_c(controller),
		.has_default_ttl = ttl != 0,
		.default_ttl = ttl,
	};
	struct roll_str rest = roll_str_c(nameservers);
	char wires[2048];

	while (rest.n) {
		struct roll_str text = roll_str_cut(&rest, ' ');
		struct roll_name server;

		must(!roll_name_parse(text, &server, NULL), "a nameserver");
		must(cls.nameservers.n + server.len <= sizeof wires, "too many nameservers");
		memcpy(wires + cls.nameservers.n, server.wire, server.len);
		cls.nameservers = roll_str_n(wires, cls.nameservers.n + server.len);
		cls.nameserver_count++;
	}
	roll_txn_put_class(txn, &row, &cls);
}

/* --- record sets --- */

static void add_rdata(struct roll_rrset *rrset, struct roll_str value, struct roll_arena *arena)
{
	const struct roll_check at = {NULL, "spec"};
	struct roll_buf wire;
	char bytes[4] = {(char)192, 0, 2, 0};
	struct roll_soa_text soa = {
		roll_str_c("ns.example."), roll_str_c("host.example."), 0, 0, 0, 0, 0};
	uint32_t number = 0;
	enum roll_status status;

	roll_buf_init(&wire, 65536);
	switch (rrset->type) {
	case ROLL_TYPE_A:
		must(!roll_str_u32(value, 255, &number), "an address");
		bytes[3] = (char)number;
		roll_buf_add(&wire, bytes, sizeof bytes);
		break;
	case ROLL_TYPE_SOA:
		must(!roll_str_u32(value, UINT32_MAX, &number), "a serial");
		soa.serial = number;
		must(!roll_rdata_soa(at, &soa, &wire), "an SOA");
		break;
	case ROLL_TYPE_TXT:
		must(!roll_rdata_txt(at, value, &wire), "a TXT");
		break;
	default:
		must(!roll_rdata_target(at, rrset->type, value, &wire), "a target");
	}
	status = roll_rrset_add(rrset, roll_buf_str(&wire), arena);
	must(!status || status == ROLL_EEXIST, "a record");
	roll_buf_fini(&wire);
}

#define OWNERS_MAX 4096

struct owned {
	struct roll_name_rrset list[OWNERS_MAX];
	struct roll_rrset rrsets[OWNERS_MAX];
	size_t count;
};

static void parse_spec(struct roll_str spec, const struct roll_name *domain,
		       struct roll_arena *arena, struct owned *out)
{
	struct roll_str type_text = roll_str_cut(&spec, ' ');
	struct roll_str name_text = roll_str_cut(&type_text, '/');
	const struct roll_type_info *type = roll_type_find_name(name_text);
	uint32_t ttl = 0;

	must(type != NULL, "a type");
	if (type_text.n)
		must(!roll_str_u32(type_text, ROLL_TTL_MAX, &ttl), "a TTL");
	while (spec.n) {
		struct roll_str value = roll_str_cut(&spec, ' ');
		struct roll_str owner = roll_str_cut(&value, '=');
		struct roll_name prefix = roll_name_root, name;
		size_t i = 0;

		if (!roll_str_eq_c(owner, "@"))
			must(!roll_name_parse(owner, &prefix, NULL), "an owner");
		must(!roll_name_join(&prefix, domain, &name), "an owner");
		while (i < out->count && !roll_name_eq(&out->list[i].owner, &name))
			i++;
		must(i < OWNERS_MAX, "too many owners");
		if (i == out->count) {
			out->list[i].owner = name;
			out->list[i].rrset = &out->rrsets[i];
			roll_rrset_init(&out->rrsets[i], type->type);
			out->rrsets[i].has_ttl = ttl != 0;
			out->rrsets[i].ttl = ttl;
			out->count++;
		}
		add_rdata(&out->rrsets[i], value, arena);
	}
}

static void put_row(struct roll_txn *txn, const struct roll_object_row *row, uint32_t number,
		    const struct roll_name *domain)
{
	struct owned *owned = calloc(1, sizeof *owned);
	struct roll_arena arena;

	must(owned != NULL, "no memory");
	roll_arena_init(&arena, (size_t)64 << 20);
	if (number)
		parse_spec(row->spec, domain, &arena, owned);
	roll_txn_put_recordset(txn, row, number, owned->list, owned->count);
	roll_arena_fini(&arena);
	free(owned);
}

void tempview_put_recordset(struct roll_txn *txn, const char *key, int64_t created_s,
			    const char *zone_key, const char *spec, uint64_t revision)
{
	struct roll_object_row row = row_of(ROLL_ROW_RECORDSET, key, created_s);
	struct roll_name domain;
	uint32_t number = 0;

	row.zone = roll_str_c(zone_key);
	row.spec = roll_str_c(spec);
	row.revision = revision;
	if (roll_txn_zone_number(txn, row.zone, &number, &domain))
		number = 0;
	put_row(txn, &row, number, &domain);
}

/* --- zones --- */

struct waiting {
	struct roll_arena arena;
	struct roll_object_row rows[1024];
	size_t count;
};

static enum roll_status keep(void *ctx, const struct roll_object_row *row)
{
	struct waiting *waiting = ctx;
	struct roll_object_row *copy = &waiting->rows[waiting->count++];

	must(waiting->count <= sizeof waiting->rows / sizeof waiting->rows[0], "too many waiting");
	*copy = *row;
	copy->key = roll_arena_str(&waiting->arena, row->key);
	copy->uid = roll_arena_str(&waiting->arena, row->uid);
	copy->scope = roll_arena_str(&waiting->arena, row->scope);
	copy->spec = roll_arena_str(&waiting->arena, row->spec);
	copy->zone = roll_arena_str(&waiting->arena, row->zone);
	copy->findings = roll_str_n(NULL, 0);
	return waiting->arena.status;
}

static void claim_waiting(struct roll_txn *txn, const char *zone_key, uint32_t number,
			  const struct roll_name *domain)
{
	struct waiting *waiting = calloc(1, sizeof *waiting);

	must(waiting != NULL, "no memory");
	roll_arena_init(&waiting->arena, (size_t)64 << 20);
	must(!roll_snap_recordsets_of(roll_txn_snap(txn), roll_str_c(zone_key), keep, waiting),
	     "the waiting record sets");
	for (size_t i = 0; i < waiting->count; i++)
		put_row(txn, &waiting->rows[i], number, domain);
	roll_arena_fini(&waiting->arena);
	free(waiting);
}

void tempview_put_zone(struct roll_txn *txn, const char *key, int64_t created_s, const char *domain,
		       const char *class_name)
{
	struct roll_object_row row = row_of(ROLL_ROW_ZONE, key, created_s);
	struct roll_name name, old;
	uint32_t number = 0;

	if (!domain) {
		claim_waiting(txn, key, 0, NULL);
		roll_txn_put_zone(txn, &row, NULL, roll_str_c(class_name), 0);
		return;
	}
	name = tempview_name(domain);
	if (roll_txn_zone_number(txn, row.key, &number, &old) || !roll_name_eq(&old, &name)) {
		number = roll_txn_new_number(txn, &name);
		if (number)
			claim_waiting(txn, key, number, &name);
	}
	roll_txn_put_zone(txn, &row, &name, roll_str_c(class_name), number);
}

void tempview_absent(struct roll_txn *txn, enum roll_row_kind kind, const char *key)
{
	(void)roll_txn_absent(txn, kind, roll_str_c(key), "event DELETED", 0);
}
