/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dns/rdata.h"
#include "tests/lib/tempview.h"

/* --- answers as text: "owner TYPE ttl rdata auth;" --- */

static enum roll_status print_row(void *ctx, const struct roll_row *row)
{
	struct roll_buf *buf = ctx;

	roll_name_print(row->owner, ROLL_DOT_NONE, buf);
	if (row->type == ROLL_TYPE_ENT) {
		roll_buf_add_c(buf, " ENT");
	} else {
		const struct roll_type_info *type = roll_type_find(row->type);

		roll_buf_printf(buf, " %s %u ", type ? type->name : "?", row->ttl);
		if (roll_rdata_print(row->type, row->rdata, ROLL_RDATA_PDNS, buf))
			roll_buf_add_c(buf, "BAD");
	}
	roll_buf_add_c(buf, row->auth ? ";" : " glue;");
	return buf->status;
}

static enum roll_status count_row(void *ctx, const struct roll_row *row)
{
	(void)row;
	++*(int *)ctx;
	return ROLL_OK;
}

struct fixture {
	struct tempview tv;
	struct roll_snap *snap;
	struct roll_buf buf;
};

static int setup(void **state)
{
	struct fixture *fx = test_calloc(1, sizeof *fx);

	tempview_init(&fx->tv);
	tempview_make(&fx->tv);
	roll_buf_init(&fx->buf, 1 << 20);
	*state = fx;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fx = *state;

	roll_snap_end(fx->snap);
	roll_buf_fini(&fx->buf);
	tempview_fini(&fx->tv);
	test_free(fx);
	return 0;
}

static void look(struct fixture *fx)
{
	roll_snap_end(fx->snap);
	assert_int_equal(roll_snap_begin(roll_writer_view(fx->tv.writer), true, &fx->snap, NULL),
			 ROLL_OK);
}

static void lookup(struct fixture *fx, const char *zone_text, const char *name_text, uint16_t type,
		   const char *want)
{
	struct roll_name apex = tempview_name(zone_text), name = tempview_name(name_text);
	const struct roll_zone *zone;
	enum roll_status status;

	roll_buf_reset(&fx->buf);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	status = roll_snap_lookup(fx->snap, zone, &name, type, print_row, &fx->buf);
	if (!want) {
		assert_int_equal(status, ROLL_ENOENT);
		return;
	}
	assert_int_equal(status, ROLL_OK);
	assert_string_equal(fx->buf.n ? fx->buf.p : "", want);
}

static void list(struct fixture *fx, const char *zone_text, const char *want)
{
	struct roll_name apex = tempview_name(zone_text);
	const struct roll_zone *zone;

	roll_buf_reset(&fx->buf);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	assert_int_equal(roll_snap_list(fx->snap, zone, print_row, &fx->buf), ROLL_OK);
	assert_string_equal(fx->buf.p, want);
}

/* A class and one zone, in one commit at revision 100. */
static struct roll_txn *begin_zone(struct fixture *fx)
{
	struct roll_txn *txn = tempview_begin(&fx->tv);

	roll_txn_set_revision(txn, &(struct roll_revision){.number = 100});
	tempview_put_class(txn, "cls", "ours", "ns1.test ns2.test", 0);
	tempview_put_zone(txn, "a/z", 10, "example.com", "cls");
	return txn;
}

#define SOA_TEXT "ns1.test hostmaster.example.com 100 10800 3600 604800 3600"
#define OWN_SOA "example.com SOA 300 " SOA_TEXT ";"
#define OWN_NS "example.com NS 300 ns1.test;example.com NS 300 ns2.test;"

static void apex_has_soa_and_ns_of_the_class_per_type(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);

	tempview_commit(txn);
	look(fx);
	lookup(fx, "example.com", "example.com", ROLL_TYPE_SOA, OWN_SOA);
	lookup(fx, "example.com", "example.com", ROLL_TYPE_NS, OWN_NS);
	lookup(fx, "example.com", "example.com", ROLL_TYPE_ANY, OWN_SOA OWN_NS);
	lookup(fx, "example.com", "example.com", ROLL_TYPE_A, "");
	list(fx, "example.com", OWN_SOA OWN_NS);

	txn = tempview_begin(&fx->tv);
	roll_txn_set_revision(txn, &(struct roll_revision){.number = 101});
	tempview_put_recordset(txn, "a/ns", 1, "a/z", "NS/60 @=own.test", 101);
	tempview_put_recordset(txn, "a/a", 1, "a/z", "A @=1", 101);
	tempview_commit(txn);
	look(fx);
	lookup(fx, "example.com", "example.com", ROLL_TYPE_NS, "example.com NS 60 own.test;");
	lookup(fx, "example.com", "example.com", ROLL_TYPE_A, "example.com A 300 192.0.2.1;");
	lookup(fx, "example.com", "example.com", ROLL_TYPE_SOA,
	       "example.com SOA 300 ns1.test hostmaster.example.com 101 10800 3600 604800 3600;");
}

static void soa_object_serves_its_own_serial_or_the_computed_one(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);
	const struct roll_zone *zone;
	struct roll_name apex = tempview_name("example.com");

	tempview_put_recordset(txn, "a/soa", 1, "a/z", "SOA @=7", 100);
	tempview_commit(txn);
	look(fx);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	assert_int_equal(zone->soa_serial, 7);
	assert_int_equal(zone->serial, 100);
	txn = tempview_begin(&fx->tv);
	roll_txn_set_revision(txn, &(struct roll_revision){.number = 200});
	tempview_put_recordset(txn, "a/soa", 1, "a/z", "SOA @=0", 200);
	tempview_commit(txn);
	look(fx);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	assert_int_equal(zone->soa_serial, 200);
	roll_buf_reset(&fx->buf);
	assert_int_equal(
		roll_snap_lookup(fx->snap, zone, &apex, ROLL_TYPE_SOA, print_row, &fx->buf),
		ROLL_OK);
	assert_non_null(strstr(fx->buf.p, "ns.example host.example 200 "));
	/* Once, also in a list. */
	roll_buf_reset(&fx->buf);
	assert_int_equal(roll_snap_list(fx->snap, zone, print_row, &fx->buf), ROLL_OK);
	assert_non_null(strstr(fx->buf.p, " SOA "));
	assert_null(strstr(strstr(fx->buf.p, " SOA ") + 1, " SOA "));
}

static void lookup_tells_data_no_data_ent_and_nothing_apart(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);

	tempview_put_recordset(txn, "a/www", 1, "a/z", "A/60 www=1 www=2 a.b.c=3", 100);
	tempview_put_recordset(txn, "a/txt", 1, "a/z", "TXT www=hello *.wild=x", 100);
	tempview_commit(txn);
	look(fx);
	lookup(fx, "example.com", "www.example.com", ROLL_TYPE_A,
	       "www.example.com A 60 192.0.2.1;www.example.com A 60 192.0.2.2;");
	lookup(fx, "example.com", "WWW.Example.Com", ROLL_TYPE_TXT,
	       "www.example.com TXT 300 \"hello\";");
	lookup(fx, "example.com", "www.example.com", ROLL_TYPE_MX, "");
	lookup(fx, "example.com", "c.example.com", ROLL_TYPE_A, "c.example.com ENT;");
	lookup(fx, "example.com", "b.c.example.com", ROLL_TYPE_ANY, "b.c.example.com ENT;");
	lookup(fx, "example.com", "wild.example.com", ROLL_TYPE_A, "wild.example.com ENT;");
	lookup(fx, "example.com", "*.wild.example.com", ROLL_TYPE_TXT,
	       "*.wild.example.com TXT 300 \"x\";");
	lookup(fx, "example.com", "y.wild.example.com", ROLL_TYPE_TXT, NULL);
	lookup(fx, "example.com", "w.example.com", ROLL_TYPE_A, NULL);
	lookup(fx, "example.com", "wwww.example.com", ROLL_TYPE_A, NULL);
	lookup(fx, "example.com", "x.www.example.com", ROLL_TYPE_A, NULL);
	lookup(fx, "example.com", "elsewhere.org", ROLL_TYPE_A, NULL);
}

static void what_lies_at_or_below_a_cut_is_not_authoritative(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);

	tempview_put_recordset(txn, "a/ns", 1, "a/z", "NS sub=ns.sub.example.com", 100);
	tempview_put_recordset(txn, "a/ns2", 1, "a/z", "NS deep.sub=ns.test", 100);
	tempview_put_recordset(txn, "a/glue", 1, "a/z", "A ns.sub=1 sub=2 x.y.sub=3 sub2=4", 100);
	tempview_commit(txn);
	look(fx);
	lookup(fx, "example.com", "sub.example.com", ROLL_TYPE_NS,
	       "sub.example.com NS 300 ns.sub.example.com glue;");
	lookup(fx, "example.com", "sub.example.com", ROLL_TYPE_A,
	       "sub.example.com A 300 192.0.2.2 glue;");
	lookup(fx, "example.com", "ns.sub.example.com", ROLL_TYPE_A,
	       "ns.sub.example.com A 300 192.0.2.1 glue;");
	lookup(fx, "example.com", "y.sub.example.com", ROLL_TYPE_A, "y.sub.example.com ENT glue;");
	lookup(fx, "example.com", "sub2.example.com", ROLL_TYPE_A,
	       "sub2.example.com A 300 192.0.2.4;");
	list(fx, "example.com",
	     OWN_SOA OWN_NS "sub.example.com A 300 192.0.2.2 glue;"
			    "sub.example.com NS 300 ns.sub.example.com glue;"
			    "deep.sub.example.com NS 300 ns.test glue;"
			    "ns.sub.example.com A 300 192.0.2.1 glue;"
			    "x.y.sub.example.com A 300 192.0.2.3 glue;"
			    "sub2.example.com A 300 192.0.2.4;");
	txn = tempview_begin(&fx->tv);
	tempview_absent(txn, ROLL_ROW_RECORDSET, "a/ns");
	tempview_absent(txn, ROLL_ROW_RECORDSET, "a/ns2");
	tempview_commit(txn);
	look(fx);
	lookup(fx, "example.com", "sub.example.com", ROLL_TYPE_A,
	       "sub.example.com A 300 192.0.2.2;");
}

static void a_cname_at_the_apex_serves_nothing_and_makes_no_ent(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);
	struct roll_name apex = tempview_name("example.com");
	struct roll_arena arena;
	struct roll_claim *claims;
	const struct roll_zone *zone;
	size_t count;

	tempview_put_recordset(txn, "a/c", 1, "a/z", "CNAME @=other.test", 100);
	tempview_commit(txn);
	look(fx);
	lookup(fx, "example.com", "example.com", ROLL_TYPE_ANY, OWN_SOA OWN_NS);
	list(fx, "example.com", OWN_SOA OWN_NS);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	roll_arena_init(&arena, 1 << 20);
	assert_int_equal(
		roll_snap_claims(fx->snap, zone->number, &apex, &apex, &arena, &claims, &count),
		ROLL_OK);
	assert_int_equal(count, 1);
	assert_int_equal(claims[0].verdict, ROLL_VERDICT_CONFLICT);
	assert_int_equal(claims[0].by, ROLL_BY_ZONE);
	roll_arena_fini(&arena);
}

static void the_root_can_be_a_zone(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = tempview_begin(&fx->tv);
	struct roll_name name = tempview_name("x.y");
	const struct roll_zone *zone;

	tempview_put_class(txn, "cls", "ours", "ns1.test", 0);
	tempview_put_zone(txn, "a/root", 10, ".", "cls");
	tempview_put_recordset(txn, "a/a", 1, "a/root", "A x=1", 5);
	tempview_commit(txn);
	look(fx);
	lookup(fx, ".", "x", ROLL_TYPE_A, "x A 300 192.0.2.1;");
	assert_int_equal(roll_snap_zone_of(fx->snap, &name, &zone), ROLL_OK);
	assert_int_equal(zone->domain.len, 1);
}

static void the_deepest_served_zone_holds_a_name(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);
	static const struct {
		const char *name, *zone;
	} cases[] = {
		{"example.com", "example.com"},
		{"www.example.com", "example.com"},
		{"sub.example.com", "sub.example.com"},
		{"a.b.sub.example.com", "sub.example.com"},
		/* Not served: the next above it. */
		{"x.off.example.com", "example.com"},
		{"example.org", NULL},
		{"com", NULL},
	};

	tempview_put_zone(txn, "a/sub", 10, "sub.example.com", "cls");
	tempview_put_zone(txn, "a/off", 10, "off.example.com", "missing");
	tempview_commit(txn);
	look(fx);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
			struct roll_name name = tempview_name(cases[i].name), want;
			const struct roll_zone *zone, *by_id;

			if (!cases[i].zone) {
				assert_int_equal(roll_snap_zone_of(fx->snap, &name, &zone),
						 ROLL_ENOENT);
				continue;
			}
			want = tempview_name(cases[i].zone);
			assert_int_equal(roll_snap_zone_of(fx->snap, &name, &zone), ROLL_OK);
			assert_true(roll_name_eq(&zone->domain, &want));
			assert_int_equal(roll_snap_zone_by_id(fx->snap, zone->id, &by_id), ROLL_OK);
			assert_ptr_equal(zone, by_id);
		}
	}
	assert_int_equal(roll_snap_zone_by_id(fx->snap, 12345, &(const struct roll_zone *){NULL}),
			 ROLL_ENOENT);
}

/* More zones than the cache has slots: those in use stay, whatever else is asked for. */
static void a_zone_in_use_stays_while_others_are_looked_up(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);
	const struct roll_zone *held, *zone;
	struct roll_name apex = tempview_name("example.com");

	for (int i = 0; i < 3000; i++) {
		char key[32], domain[32];

		snprintf(key, sizeof key, "a/z%d", i);
		snprintf(domain, sizeof domain, "z%d.test", i);
		tempview_put_zone(txn, key, 10, domain, "cls");
	}
	tempview_commit(txn);
	look(fx);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &held), ROLL_OK);
	for (int i = 0; i < 3000; i++) {
		char domain[32];
		struct roll_name name;

		snprintf(domain, sizeof domain, "z%d.test", i);
		name = tempview_name(domain);
		assert_int_equal(roll_snap_zone_at(fx->snap, &name, &zone), ROLL_OK);
		assert_true(roll_name_eq(&zone->domain, &name));
	}
	assert_true(roll_name_eq(&held->domain, &apex));
}

struct seen {
	struct roll_snap *snap;
	char text[512];
};

static enum roll_status on_domain(void *ctx, const struct roll_domain *domain)
{
	struct seen *seen = ctx;
	char name[ROLL_NAME_TEXT_SIZE];
	size_t n = strlen(seen->text);

	n += (size_t)snprintf(seen->text + n, sizeof seen->text - n, "%s:%s%s",
			      roll_name_show(&domain->name, name),
			      roll_zone_state_text(domain->state), domain->zone ? "+" : "");
	for (uint32_t i = 0; i < domain->row->claim_count; i++) {
		enum roll_zone_state state;

		assert_int_equal(roll_snap_claim_state(seen->snap, domain, i, &state), ROLL_OK);
		n += (size_t)snprintf(seen->text + n, sizeof seen->text - n, " %.*s=%s%s",
				      (int)domain->row->claims[i].object.n,
				      domain->row->claims[i].object.p, roll_zone_state_text(state),
				      i == domain->holder ? "*" : "");
	}
	snprintf(seen->text + n, sizeof seen->text - n, "\n");
	return ROLL_OK;
}

static void the_oldest_claim_whose_class_is_not_foreign_holds_a_domain(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = tempview_begin(&fx->tv);
	struct seen seen = {NULL, ""};
	struct roll_name none = tempview_name("f.test");
	struct roll_domain domain;

	tempview_put_class(txn, "cls", "ours", "ns1.test", 0);
	tempview_put_class(txn, "bare", "ours", "", 0);
	tempview_put_class(txn, "foreign", "theirs", "ns1.test", 0);
	tempview_put_zone(txn, "a/1", 1, "a.test", "foreign");
	tempview_put_zone(txn, "a/2", 2, "a.test", "cls");
	tempview_put_zone(txn, "a/3", 3, "a.test", "cls");
	tempview_put_zone(txn, "a/4", 2, "b.test", "");
	tempview_put_zone(txn, "a/5", 2, "c.test", "nowhere");
	tempview_put_zone(txn, "a/6", 2, "d.test", "bare");
	tempview_put_zone(txn, "a/7", 2, "e.test", "foreign");
	tempview_put_zone(txn, "a/8", 2, "f.test", "cls");
	tempview_put_zone(txn, "a/9", 2, "g.test", "bare");
	tempview_put_recordset(txn, "a/soa", 1, "a/9", "SOA @=0", 1);
	tempview_absent(txn, ROLL_ROW_ZONE, "a/8");
	tempview_commit(txn);
	look(fx);
	seen.snap = fx->snap;
	assert_int_equal(roll_snap_domains(fx->snap, on_domain, &seen), ROLL_OK);
	assert_string_equal(seen.text,
			    "a.test:served+ a/1=class of another controller a/2=served* "
			    "a/3=in use\n"
			    "b.test:no class name a/4=no class name*\n"
			    "c.test:class missing a/5=class missing*\n"
			    "d.test:no nameservers a/6=no nameservers*\n"
			    "e.test:class of another controller a/7=class of another controller\n"
			    "g.test:served+ a/9=served*\n");
	assert_int_equal(roll_snap_domain(fx->snap, &none, &domain), ROLL_ENOENT);
	none = tempview_name("a.test");
	assert_int_equal(roll_snap_domain(fx->snap, &none, &domain), ROLL_OK);
	assert_int_equal(domain.row->claim_count, 3);
	assert_int_equal(domain.holder, 1);
	assert_non_null(domain.zone);
}

static enum roll_status on_object(void *ctx, const struct roll_object_row *row)
{
	struct seen *seen = ctx;
	size_t n = strlen(seen->text);

	snprintf(seen->text + n, sizeof seen->text - n, "%.*s ", (int)row->key.n, row->key.p);
	return ROLL_OK;
}

static enum roll_status on_claims(void *ctx, const struct roll_name *owner,
				  const struct roll_claim *claims, size_t count)
{
	struct seen *seen = ctx;
	char name[ROLL_NAME_TEXT_SIZE];
	size_t n = strlen(seen->text);

	n += (size_t)snprintf(seen->text + n, sizeof seen->text - n, "%s",
			      roll_name_show(owner, name));
	for (size_t i = 0; i < count; i++)
		n += (size_t)snprintf(seen->text + n, sizeof seen->text - n, " %.*s=%s",
				      (int)claims[i].object.n, claims[i].object.p,
				      roll_verdict_text(claims[i].verdict));
	snprintf(seen->text + n, sizeof seen->text - n, "\n");
	return ROLL_OK;
}

static void objects_and_claims_are_walked_in_order(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);
	struct roll_name apex = tempview_name("example.com");
	struct seen seen = {NULL, ""};
	struct roll_object_row row;
	struct roll_class_row cls;
	struct roll_dzone_row dzone;
	uint32_t number;

	tempview_put_recordset(txn, "a/b", 2, "a/z", "A www=1 x=1", 100);
	tempview_put_recordset(txn, "a/a", 1, "a/z", "A www=2", 100);
	tempview_put_recordset(txn, "a/c", 3, "a/z", "CNAME www=x.test", 100);
	tempview_put_recordset(txn, "a/d", 3, "a/other", "A www=2", 100);
	tempview_commit(txn);
	look(fx);
	assert_int_equal(
		roll_snap_objects(fx->snap, ROLL_ROW_RECORDSET, roll_str_c(""), on_object, &seen),
		ROLL_OK);
	assert_string_equal(seen.text, "a/a a/b a/c a/d ");
	seen.text[0] = '\0';
	assert_int_equal(roll_snap_objects(fx->snap, ROLL_ROW_RECORDSET, roll_str_c("a/b"),
					   on_object, &seen),
			 ROLL_OK);
	assert_string_equal(seen.text, "a/c a/d ");
	seen.text[0] = '\0';
	assert_int_equal(roll_snap_recordsets_of(fx->snap, roll_str_c("a/z"), on_object, &seen),
			 ROLL_OK);
	assert_string_equal(seen.text, "a/a a/b a/c ");
	assert_int_equal(roll_snap_dzone(fx->snap, roll_str_c("a/z"), &number, &dzone), ROLL_OK);
	assert_int_equal(dzone.name_count, 2);
	assert_int_equal(roll_snap_dzone(fx->snap, roll_str_c("a/other"), &number, &dzone),
			 ROLL_ENOENT);
	seen.text[0] = '\0';
	assert_int_equal(roll_snap_all_claims(fx->snap, number, &apex, on_claims, &seen), ROLL_OK);
	assert_string_equal(seen.text, "www.example.com a/a=Served a/b=NotOwner a/c=Conflict\n"
				       "x.example.com a/b=Served\n");
	assert_int_equal(roll_snap_object(fx->snap, ROLL_ROW_RECORDSET, roll_str_c("a/b"), &row),
			 ROLL_OK);
	assert_int_equal(row.number, number);
	assert_true(roll_str_eq_c(row.spec, "A www=1 x=1"));
	assert_int_equal(roll_snap_object(fx->snap, ROLL_ROW_ZONE, roll_str_c("a/b"), &row),
			 ROLL_ENOENT);
	assert_int_equal(roll_snap_class(fx->snap, roll_str_c("cls"), &cls), ROLL_OK);
	assert_int_equal(cls.nameserver_count, 2);
	assert_int_equal(roll_snap_class(fx->snap, roll_str_c("no"), &cls), ROLL_ENOENT);
}

static void a_callback_ends_the_walk_with_its_status(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);
	struct roll_name apex = tempview_name("example.com");
	const struct roll_zone *zone;
	struct roll_buf full;

	tempview_commit(txn);
	look(fx);
	roll_buf_init(&full, 4);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_OK);
	assert_int_equal(roll_snap_list(fx->snap, zone, print_row, &full), ROLL_ELIMIT);
	roll_buf_fini(&full);
}

static void ttl_falls_back_to_the_class_and_then_to_300(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);

	tempview_put_recordset(txn, "a/a", 1, "a/z", "A x=1", 100);
	tempview_put_recordset(txn, "a/b", 1, "a/z", "A/5 y=1", 100);
	tempview_commit(txn);
	look(fx);
	lookup(fx, "example.com", "x.example.com", ROLL_TYPE_A, "x.example.com A 300 192.0.2.1;");
	txn = tempview_begin(&fx->tv);
	tempview_put_class(txn, "cls", "ours", "ns1.test ns2.test", 77);
	tempview_commit(txn);
	look(fx);
	lookup(fx, "example.com", "x.example.com", ROLL_TYPE_A, "x.example.com A 77 192.0.2.1;");
	lookup(fx, "example.com", "y.example.com", ROLL_TYPE_A, "y.example.com A 5 192.0.2.1;");
	lookup(fx, "example.com", "example.com", ROLL_TYPE_NS,
	       "example.com NS 77 ns1.test;example.com NS 77 ns2.test;");
}

/* Names whose labels hold the bytes that keys escape: order and ENTs must not be confused. */
static void odd_labels_are_found_and_make_no_false_ents(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);

	tempview_put_recordset(txn, "a/a", 1, "a/z", "A a\\000b=1 \\001.c=2 c\\001=3", 100);
	tempview_commit(txn);
	look(fx);
	lookup(fx, "example.com", "a\\000b.example.com", ROLL_TYPE_A,
	       "a\\000b.example.com A 300 192.0.2.1;");
	lookup(fx, "example.com", "a.example.com", ROLL_TYPE_A, NULL);
	lookup(fx, "example.com", "c.example.com", ROLL_TYPE_A, "c.example.com ENT;");
	lookup(fx, "example.com", "\\001.c.example.com", ROLL_TYPE_A,
	       "\\001.c.example.com A 300 192.0.2.2;");
	lookup(fx, "example.com", "c\\001.example.com", ROLL_TYPE_A,
	       "c\\001.example.com A 300 192.0.2.3;");
}

static void a_transaction_sees_its_own_changes(void **state)
{
	struct fixture *fx = *state;
	struct roll_txn *txn = begin_zone(fx);
	struct roll_name apex = tempview_name("example.com"),
			 www = tempview_name("www.example.com");
	const struct roll_zone *zone;
	int rows = 0;

	assert_int_equal(roll_snap_zone_at(roll_txn_snap(txn), &apex, &zone), ROLL_OK);
	assert_int_equal(
		roll_snap_lookup(roll_txn_snap(txn), zone, &www, ROLL_TYPE_A, count_row, &rows),
		ROLL_ENOENT);
	tempview_put_recordset(txn, "a/a", 1, "a/z", "A www=1", 100);
	assert_int_equal(roll_snap_zone_at(roll_txn_snap(txn), &apex, &zone), ROLL_OK);
	assert_int_equal(
		roll_snap_lookup(roll_txn_snap(txn), zone, &www, ROLL_TYPE_A, count_row, &rows),
		ROLL_OK);
	assert_int_equal(rows, 1);
	look(fx); /* nobody else does */
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_ENOENT);
	roll_txn_abort(txn);
	look(fx);
	assert_int_equal(roll_snap_zone_at(fx->snap, &apex, &zone), ROLL_ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(apex_has_soa_and_ns_of_the_class_per_type),
		TEST(soa_object_serves_its_own_serial_or_the_computed_one),
		TEST(lookup_tells_data_no_data_ent_and_nothing_apart),
		TEST(what_lies_at_or_below_a_cut_is_not_authoritative),
		TEST(a_cname_at_the_apex_serves_nothing_and_makes_no_ent),
		TEST(the_root_can_be_a_zone),
		TEST(the_deepest_served_zone_holds_a_name),
		TEST(a_zone_in_use_stays_while_others_are_looked_up),
		TEST(the_oldest_claim_whose_class_is_not_foreign_holds_a_domain),
		TEST(objects_and_claims_are_walked_in_order),
		TEST(a_callback_ends_the_walk_with_its_status),
		TEST(ttl_falls_back_to_the_class_and_then_to_300),
		TEST(odd_labels_are_found_and_make_no_false_ents),
		TEST(a_transaction_sees_its_own_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
