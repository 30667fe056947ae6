/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <ftw.h>
#include <lmdb.h>
#include <unistd.h>

#include "apply/apply.h"
#include "base/json.h"
#include "ctl/ctl.h"

/*
 * `rollcall verify` finds every kind of damage. The view has no way to be damaged through its own
 * interface, so its tables are changed with LMDB itself.
 */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof *(a))
#define API "\"apiVersion\":\"dns.networking.miloapis.com/v1alpha1\""

static const char *const objects[] = {
	"{" API ",\"kind\":\"DNSZoneClass\",\"metadata\":{\"name\":\"public\"},\"spec\":{"
	"\"controllerName\":\"powerdns\",\"nameServerPolicy\":{\"mode\":\"Static\",\"static\":{"
	"\"servers\":[\"ns1.example.net\"]}}}}",
	"{" API ",\"kind\":\"DNSZone\",\"metadata\":{\"name\":\"z\"},\"spec\":{\"domainName\":"
	"\"example.com\",\"dnsZoneClassName\":\"public\"}}",
	"{" API ",\"kind\":\"DNSRecordSet\",\"metadata\":{\"name\":\"www\"},\"spec\":{"
	"\"dnsZoneRef\":{\"name\":\"z\"},\"recordType\":\"A\",\"records\":[{\"name\":\"www\",\"a\":"
	"{"
	"\"content\":\"192.0.2.10\"}}]}}",
	"{" API ",\"kind\":\"DNSRecordSet\",\"metadata\":{\"name\":\"old\",\"creationTimestamp\":"
	"\"2025-01-01T00:00:00Z\"},\"spec\":{\"dnsZoneRef\":{\"name\":\"z\"},\"recordType\":\"A\","
	"\"records\":[{\"name\":\"both\",\"a\":{\"content\":\"192.0.2.20\"}}]}}",
	"{" API ",\"kind\":\"DNSRecordSet\",\"metadata\":{\"name\":\"young\"},\"spec\":{"
	"\"dnsZoneRef\":{\"name\":\"z\"},\"recordType\":\"A\",\"records\":[{\"name\":\"both\","
	"\"a\":{"
	"\"content\":\"192.0.2.21\"}}]}}",
	"{" API ",\"kind\":\"DNSRecordSet\",\"metadata\":{\"name\":\"lab\"},\"spec\":{"
	"\"dnsZoneRef\":{\"name\":\"z\"},\"recordType\":\"NS\",\"records\":[{\"name\":\"lab\","
	"\"ns\":{\"content\":\"ns1.example.net.\"}}]}}",
};

static char dir[] = "/tmp/roll-verify-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void remove_view(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void build_view(void)
{
	struct roll_writer_conf conf = {
		.dir = dir, .controller = "powerdns", .clock = &roll_clock_system};
	struct roll_apply *apply = roll_apply_new();
	enum roll_apply_result result;
	struct roll_writer *writer;
	struct roll_object object;
	struct roll_txn *txn;
	bool is_fresh;
	json_t *json;
	size_t i;

	assert_non_null(apply);
	assert_int_equal(roll_writer_open(&conf, &writer, &is_fresh, NULL), ROLL_OK);
	assert_int_equal(roll_txn_begin(writer, &txn, NULL), ROLL_OK);
	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		assert_int_equal(roll_json_parse(roll_str_c(objects[i]), &json, NULL), ROLL_OK);
		assert_int_equal(roll_object_decode(json, &object, NULL), ROLL_OK);
		assert_int_equal(roll_apply_put(apply, txn, &object, roll_str_c("all.yaml"), NULL,
						0, &result),
				 ROLL_OK);
		json_decref(json);
	}
	roll_txn_set_complete(txn, 1);
	assert_int_equal(roll_txn_commit(txn, NULL), ROLL_OK);
	assert_int_equal(roll_writer_finish(writer, NULL), ROLL_OK);
	roll_writer_close(writer);
	roll_apply_free(apply);
}

/* Runs the verb; *text is what it printed, to be freed. */
static int run_verify(bool is_json, char **text)
{
	struct roll_ctl ctl = {
		.clock = &roll_clock_system, .view_dir = dir, .verb = "verify", .is_json = is_json};
	size_t size;
	FILE *file = open_memstream(text, &size);
	int code;

	assert_non_null(file);
	assert_int_equal(roll_out_init(&ctl.out, file), ROLL_OK);
	code = roll_cmd_verify(&ctl);
	assert_int_equal(roll_out_fini(&ctl.out), ROLL_OK);
	fclose(file);
	return code;
}

/* --- LMDB, without the view's own code in between --- */

struct raw {
	MDB_env *env;
	MDB_txn *txn;
};

static struct raw raw_begin(void)
{
	char path[sizeof dir + 10];
	struct raw raw;

	snprintf(path, sizeof path, "%s/current", dir);
	assert_int_equal(mdb_env_create(&raw.env), 0);
	assert_int_equal(mdb_env_set_maxdbs(raw.env, 32), 0);
	assert_int_equal(mdb_env_open(raw.env, path, 0, 0600), 0);
	assert_int_equal(mdb_txn_begin(raw.env, NULL, 0, &raw.txn), 0);
	return raw;
}

static void raw_end(struct raw *raw)
{
	assert_int_equal(mdb_txn_commit(raw->txn), 0);
	mdb_env_close(raw->env);
}

static MDB_dbi table(struct raw *raw, const char *name)
{
	MDB_dbi dbi;

	assert_int_equal(mdb_dbi_open(raw->txn, name, 0, &dbi), 0);
	return dbi;
}

/* A copy of the value under a key that ends in `tail`; *key is a copy too. To be freed. */
static struct roll_str find_row(struct raw *raw, const char *name, const void *tail, size_t tail_n,
				struct roll_str *key)
{
	MDB_val k, v;
	MDB_cursor *cursor;
	struct roll_str value = {NULL, 0};
	char *copy;

	assert_int_equal(mdb_cursor_open(raw->txn, table(raw, name), &cursor), 0);
	while (mdb_cursor_get(cursor, &k, &v, MDB_NEXT) == 0) {
		if (k.mv_size < tail_n ||
		    memcmp((char *)k.mv_data + k.mv_size - tail_n, tail, tail_n) != 0)
			continue;
		copy = malloc(k.mv_size + v.mv_size + 1);
		assert_non_null(copy);
		memcpy(copy, k.mv_data, k.mv_size);
		memcpy(copy + k.mv_size, v.mv_data, v.mv_size);
		*key = roll_str_n(copy, k.mv_size);
		value = roll_str_n(copy + k.mv_size, v.mv_size);
		break;
	}
	mdb_cursor_close(cursor);
	assert_non_null(value.p);
	return value;
}

static void put_row(struct raw *raw, const char *name, struct roll_str key, struct roll_str value)
{
	MDB_val k = {key.n, (void *)key.p}, v = {value.n, (void *)value.p};

	assert_int_equal(mdb_put(raw->txn, table(raw, name), &k, &v, 0), 0);
}

static void drop_row(struct raw *raw, const char *name, struct roll_str key)
{
	MDB_val k = {key.n, (void *)key.p};

	assert_int_equal(mdb_del(raw->txn, table(raw, name), &k, NULL), 0);
}

static void free_row(struct roll_str key)
{
	free((void *)key.p);
}

/* The row of a name, by its key below the zone's domain. */
#define WWW "www", 4
#define BOTH "both", 5

/* --- damage --- */

static void lose_name(struct raw *raw)
{
	struct roll_str key;

	find_row(raw, "names", WWW, &key);
	drop_row(raw, "names", key);
	free_row(key);
}

static void leave_name(struct raw *raw)
{
	struct roll_str key, value = find_row(raw, "names", WWW, &key);
	char other[64];

	assert_true(key.n == 8);
	memcpy(other, key.p, 4);
	memcpy(other + 4, "ghost", 6);
	put_row(raw, "names", roll_str_n(other, 10), value);
	free_row(key);
}

static void leave_name_of_unknown_zone(struct raw *raw)
{
	struct roll_str key, value = find_row(raw, "names", WWW, &key);

	put_row(raw, "names", roll_str_n("\0\0\x77\x77ghost", 10), value);
	free_row(key);
}

static void change_address(struct raw *raw)
{
	static const unsigned char address[] = {192, 0, 2, 10};
	struct roll_str key, value = find_row(raw, "names", WWW, &key);
	char *at = memmem(value.p, value.n, address, sizeof address);

	assert_non_null(at);
	at[3] = 99;
	put_row(raw, "names", key, value);
	free_row(key);
}

static void give_name_to_another(struct raw *raw)
{
	struct roll_str key, other, ignored;

	find_row(raw, "names", WWW, &key);
	ignored = find_row(raw, "names", BOTH, &other);
	put_row(raw, "names", key, ignored);
	free_row(key);
	free_row(other);
}

static void let_the_younger_serve(struct raw *raw)
{
	struct roll_str key, value = find_row(raw, "names", BOTH, &key);
	struct roll_claim *claims, swapped;
	struct roll_arena arena;
	struct roll_buf buf;
	size_t count;

	roll_arena_init(&arena, 1 << 20);
	roll_buf_init(&buf, 1 << 20);
	assert_int_equal(roll_claims_decode(value, &arena, &claims, &count), ROLL_OK);
	assert_int_equal(count, 2);
	swapped = claims[0];
	claims[0] = claims[1];
	claims[1] = swapped;
	claims[0].verdict = ROLL_VERDICT_SERVED;
	claims[0].by = ROLL_BY_NONE;
	claims[1].verdict = ROLL_VERDICT_NOT_OWNER;
	claims[1].by = 0;
	roll_claims_encode(claims, count, &buf);
	put_row(raw, "names", key, roll_buf_str(&buf));
	roll_buf_fini(&buf);
	roll_arena_fini(&arena);
	free_row(key);
}

static void lose_class(struct raw *raw)
{
	drop_row(raw, "classes", roll_str_c("public"));
}

static void change_class(struct raw *raw)
{
	struct roll_str key, value = find_row(raw, "classes", "public", 6, &key);
	struct roll_class_row row;
	struct roll_buf buf;

	roll_buf_init(&buf, 1 << 16);
	assert_int_equal(roll_class_row_decode(value, &row), ROLL_OK);
	row.has_default_ttl = true;
	row.default_ttl = 7;
	roll_class_row_encode(&row, &buf);
	put_row(raw, "classes", key, roll_buf_str(&buf));
	roll_buf_fini(&buf);
	free_row(key);
}

static void lose_domain_claim(struct raw *raw)
{
	struct roll_str key, value = find_row(raw, "domains", "example", 8, &key);
	struct roll_domain_row row;
	struct roll_arena arena;
	struct roll_buf buf;

	roll_arena_init(&arena, 1 << 16);
	roll_buf_init(&buf, 1 << 16);
	assert_int_equal(roll_domain_row_decode(value, &arena, &row), ROLL_OK);
	row.claim_count = 0;
	roll_domain_row_encode(&row, &buf);
	put_row(raw, "domains", key, roll_buf_str(&buf));
	roll_buf_fini(&buf);
	roll_arena_fini(&arena);
	free_row(key);
}

static void miscount_delegations(struct raw *raw)
{
	struct roll_str key, value = find_row(raw, "dzones", "", 0, &key);
	struct roll_dzone_row row;
	struct roll_buf buf;

	roll_buf_init(&buf, 1 << 16);
	assert_int_equal(roll_dzone_row_decode(value, &row), ROLL_OK);
	row.cut_count += 5;
	roll_dzone_row_encode(&row, &buf);
	put_row(raw, "dzones", key, roll_buf_str(&buf));
	roll_buf_fini(&buf);
	free_row(key);
}

static void lose_index(struct raw *raw)
{
	struct roll_str key;

	find_row(raw, "byzone", "default/www", 11, &key);
	drop_row(raw, "byzone", key);
	free_row(key);
}

static void leave_index(struct raw *raw)
{
	struct roll_str key;
	char other[64];

	find_row(raw, "byzone", "default/www", 11, &key);
	assert_true(key.n == 19);
	memcpy(other, key.p, key.n);
	other[key.n - 1] = 'x';
	put_row(raw, "byzone", roll_str_n(other, key.n), roll_str_n("", 0));
	free_row(key);
}

/* The defect that all of this is about: claims without the object that made them. */
static void lose_object(struct raw *raw)
{
	struct roll_str key;

	find_row(raw, "objects", "default/www", 11, &key);
	drop_row(raw, "objects", key);
	free_row(key);
}

static void change_object(struct raw *raw)
{
	struct roll_str key, value = find_row(raw, "objects", "default/www", 11, &key);
	char *at = memmem(value.p, value.n, "192.0.2.10", 10);

	assert_non_null(at);
	at[9] = '1';
	put_row(raw, "objects", key, value);
	free_row(key);
}

static const struct {
	const char *rule;
	void (*inflict)(struct raw *raw);
	const char *want; /* in the output */
} cases[] = {
	{"a name that is lost", lose_name,
	 "missing   names    www.example.com of DNSZone default/z"},
	{"a name that is left over", leave_name,
	 "left over names    ghost.example.com of DNSZone default/z"},
	{"a name of no zone", leave_name_of_unknown_zone, "left over names    number 30583"},
	{"a changed record", change_address,
	 "differs   names    www.example.com of DNSZone default/z: the records of default/www"},
	{"another's claim at a name", give_name_to_another,
	 "www.example.com of DNSZone default/z: a claim of default/old, which does not mean it"},
	{"a wrong winner", let_the_younger_serve,
	 "both.example.com of DNSZone default/z: the claim of default/young is held to be Served"},
	{"a class that is lost", lose_class, "missing   classes  public"},
	{"a changed class", change_class, "differs   classes  public"},
	{"a lost claim to a domain", lose_domain_claim, "differs   domains  example.com"},
	{"wrong delegations", miscount_delegations,
	 "differs   dzones   default/z: its delegations are counted wrongly"},
	{"a lost index row", lose_index, "missing   byzone   default/www"},
	{"an index row that is left over", leave_index, "left over byzone   default/wwx"},
	{"claims of an object that is gone", lose_object,
	 "left over names    www.example.com of DNSZone default/z"},
	{"an object that was changed alone", change_object,
	 "the records of default/www are not those of its spec"},
};

static void finds_every_kind_of_damage(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct raw raw;
		char *text;
		int code;

		build_view();
		raw = raw_begin();
		cases[i].inflict(&raw);
		raw_end(&raw);
		code = run_verify(false, &text);
		if (code != ROLL_EXIT_FINDINGS || !strstr(text, cases[i].want))
			fail_msg("%s: exit %d, wanted \"%s\" in:\n%s", cases[i].rule, code,
				 cases[i].want, text);
		free(text);
		remove_view();
	}
}

static void accepts_a_view_that_is_right(void **state)
{
	char *text;

	(void)state;
	build_view();
	assert_int_equal(run_verify(false, &text), ROLL_EXIT_OK);
	assert_non_null(strstr(text, "6 objects, 3 names: the view is what the objects mean"));
	free(text);
	assert_int_equal(run_verify(true, &text), ROLL_EXIT_OK);
	assert_string_equal(text,
			    "{\"differences\":[],\"objects\":6,\"names\":3,\"sweepPending\":0,"
			    "\"good\":true}\n");
	free(text);
	remove_view();
}

/* Rows under a number that is listed as gone wait for the sweep. */
static void counts_what_waits_to_be_swept(void **state)
{
	struct roll_str key, value, number = roll_str_n("\0\0\0\x63", 4);
	struct roll_head head;
	struct roll_buf buf;
	struct raw raw;
	char *text;
	int code;

	(void)state;
	build_view();
	raw = raw_begin();
	value = find_row(&raw, "dzones", "", 0, &key);
	put_row(&raw, "dzones", number, value);
	put_row(&raw, "gone", number, roll_str_n("", 0));
	free_row(key);
	value = find_row(&raw, "names", WWW, &key);
	put_row(&raw, "names", roll_str_n("\0\0\0\x63gone", 9), value);
	free_row(key);
	roll_buf_init(&buf, 1 << 16);
	value = find_row(&raw, "meta", "head", 4, &key);
	assert_int_equal(roll_head_decode(value, &head), ROLL_OK);
	head.name_count++;
	roll_head_encode(&head, &buf);
	put_row(&raw, "meta", key, roll_buf_str(&buf));
	roll_buf_fini(&buf);
	free_row(key);
	raw_end(&raw);

	code = run_verify(false, &text);
	if (code != ROLL_EXIT_OK || !strstr(text, "1 rows of zones that are gone"))
		fail_msg("exit %d:\n%s", code, text);
	free(text);
	remove_view();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_a_view_that_is_right),
		cmocka_unit_test(finds_every_kind_of_damage),
		cmocka_unit_test(counts_what_waits_to_be_swept),
	};

	assert_non_null(mkdtemp(dir));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
