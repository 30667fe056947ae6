/* SPDX-License-Identifier: Apache-2.0 */

/*
 * rollcall verify: is the view what its objects mean?
 *
 * Every object row holds the whole spec. From these a second view is built, and the two are
 * compared table by table, each row of one being looked for in the other, so that memory does not
 * grow with the view. What is left to chance between the two (the numbers of DNSZones, ids and
 * serials, which depend on history) is mapped or left out. Rows under numbers that are gone wait to
 * be swept: they answer nothing and are counted only.
 */

#include <string.h>

#include "base/json.h"
#include "ctl/ctl.h"
#include "ctl/scratch.h"
#include "view/stat.h"

#define ARENA_LIMIT ((size_t)64 << 20)

/* One direction of the comparison: rows of `from` are looked for in `in`. */
struct verify {
	struct roll_ctl *ctl;
	struct roll_scratch *scratch;
	struct roll_snap *real, *want;
	struct roll_snap *from, *in;
	bool is_reverse; /* from is what is wanted: what lacks is missing */
	const char *table;
	struct roll_arena arena, other_arena;
	struct roll_buf item;
	uint64_t differences;
	uint64_t objects, names, sweep;
	struct roll_err err;

	/* While objects are put: */
	enum roll_row_kind kind;
	/* While names are walked: the number of the present row and what it is in the other view.
	 */
	uint32_t number;
	enum { NUMBER_KNOWN, NUMBER_GONE, NUMBER_STRAY } number_is;
	bool has_number;
	uint32_t other_number;
	struct roll_dzone_row dzone;
};

/* --- reporting --- */

static void report(struct verify *v, const char *what, const char *text)
{
	struct roll_out *out = &v->ctl->out;

	v->differences++;
	if (v->ctl->is_json) {
		roll_out_open(out, NULL, '{');
		roll_out_c(out, "what", what);
		roll_out_c(out, "table", v->table);
		roll_out_str(out, "item", roll_buf_str(&v->item));
		roll_out_c(out, "text", text);
		roll_out_close(out);
		return;
	}
	roll_out_text(out, "%-10s%-9s", what, v->table);
	roll_out_raw(out, roll_buf_str(&v->item));
	roll_out_text(out, ": %s\n", text);
}

static const char *lacking(const struct verify *v)
{
	return v->is_reverse ? "missing" : "left over";
}

static const char *lacking_text(const struct verify *v)
{
	return v->is_reverse ? "the objects mean it, the view lacks it"
			     : "the view has it, no object means it";
}

static void name_item(struct verify *v, struct roll_str item)
{
	roll_buf_reset(&v->item);
	roll_buf_add_shown(&v->item, item, 600);
}

static void on_damage(void *ctx, const char *table, struct roll_str shown_key, const char *what)
{
	struct verify *v = ctx;

	v->table = table;
	roll_buf_reset(&v->item);
	roll_buf_add_str(&v->item, shown_key);
	report(v, "damaged", what);
}

static enum roll_status interrupted(void)
{
	return roll_scratch_is_interrupted() ? ROLL_ECANCELED : ROLL_OK;
}

/* --- what the view must hold --- */

static enum roll_status on_object(void *ctx, const struct roll_object_row *row)
{
	struct roll_object object = {
		.kind = (enum roll_kind)row->kind,
		.name = row->key,
		.uid = row->uid,
		.revision = row->revision,
		.generation = row->generation,
		.created_s = row->created_s,
	};
	struct verify *v = ctx;
	enum roll_status status;
	json_t *spec = NULL;

	v->objects++;
	if (row->kind != ROLL_ROW_CLASS)
		object.ns = roll_str_cut(&object.name, '/');
	if (row->spec.n && roll_json_parse(row->spec, &spec, NULL) != ROLL_OK) {
		v->table = "objects";
		name_item(v, row->key);
		report(v, "damaged", "the spec is not JSON");
		return ROLL_OK;
	}
	object.spec = spec;
	/* Strings of the row are borrowed from the snapshot, which outlives the batch. */
	status = roll_scratch_put(v->scratch, &object, spec, row->scope, &v->err);
	json_decref(spec);
	return status;
}

static enum roll_status build(struct verify *v)
{
	struct roll_scratch_conf conf = {.clock = v->ctl->clock};
	struct roll_str name = roll_snap_head(v->real)->controller;
	enum roll_status status;
	char controller[300];
	unsigned kind;

	if (name.n >= sizeof controller || memchr(name.p, '\0', name.n))
		return roll_err_set(&v->err, ROLL_ECORRUPT, NULL, "the controller's name is odd");
	memcpy(controller, name.p, name.n);
	controller[name.n] = '\0';
	conf.controller = controller;
	status = roll_scratch_new(&conf, &v->scratch, &v->err);
	/* Classes, zones, record sets: so that nothing has to wait for its zone. */
	for (kind = 0; status == ROLL_OK && kind < ROLL_ROW_KINDS; kind++)
		status = roll_snap_objects(v->real, (enum roll_row_kind)kind, roll_str_n(NULL, 0),
					   on_object, v);
	if (status == ROLL_OK)
		status = roll_scratch_finish(v->scratch, &v->want, &v->err);
	return status;
}

/* --- objects --- */

static bool is_gone(struct roll_snap *snap, struct roll_str number_key)
{
	struct roll_str ignored;

	return roll_snap_raw_get(snap, "gone", number_key, &ignored) == ROLL_OK;
}

/*
 * The DNSZone under a number; empty for none. A zone that is gone leaves its number in the rows of
 * its record sets, however many they are: they claim nothing under it.
 */
static struct roll_str zone_of_number(struct roll_snap *snap, uint32_t number)
{
	uint8_t key[4] = {(uint8_t)(number >> 24), (uint8_t)(number >> 16), (uint8_t)(number >> 8),
			  (uint8_t)number};
	struct roll_dzone_row row;
	struct roll_str value;

	if (!number || is_gone(snap, roll_str_n((char *)key, 4)) ||
	    roll_snap_raw_get(snap, "dzones", roll_str_n((char *)key, 4), &value) ||
	    roll_dzone_row_decode(value, &row))
		return roll_str_n("", 0);
	return row.object;
}

static enum roll_status compare_object(void *ctx, const struct roll_object_row *row)
{
	struct roll_object_row other;
	struct roll_str zone, names;
	struct verify *v = ctx;
	enum roll_status status;

	name_item(v, row->key);
	status = roll_snap_object(v->want, row->kind, row->key, &other);
	if (status == ROLL_ENOENT) {
		report(v, "left over", "its spec cannot be put into a view");
		return interrupted();
	}
	if (status != ROLL_OK)
		return status;
	if (!roll_str_eq(row->zone, other.zone))
		report(v, "differs", "it is filed under another DNSZone than its spec names");
	if (row->record_count != other.record_count)
		report(v, "differs", "its records are counted wrongly");
	zone = zone_of_number(v->real, row->number);
	names = row->kind == ROLL_ROW_RECORDSET && !zone.n ? other.names : row->names;
	if (!roll_str_eq(names, other.names))
		report(v, "differs",
		       "the names that it is said to claim are not those of its spec");
	if (row->kind == ROLL_ROW_RECORDSET &&
	    !roll_str_eq(zone, zone_of_number(v->want, other.number)))
		report(v, "differs", "its claims stand under another DNSZone");
	return interrupted();
}

static enum roll_status compare_objects(struct verify *v)
{
	enum roll_status status = ROLL_OK;
	unsigned kind;

	v->table = "objects";
	for (kind = 0; status == ROLL_OK && kind < ROLL_ROW_KINDS; kind++)
		status = roll_snap_objects(v->real, (enum roll_row_kind)kind, roll_str_n(NULL, 0),
					   compare_object, v);
	return status;
}

/* --- DNSZones and names --- */

static uint32_t read_number(struct roll_str key)
{
	const unsigned char *p = (const unsigned char *)key.p;

	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static enum roll_status compare_dzone(void *ctx, struct roll_str key, struct roll_str value)
{
	struct roll_dzone_row row, other;
	struct verify *v = ctx;
	enum roll_status status;
	uint32_t number;

	if (key.n != 4 || roll_dzone_row_decode(value, &row) != ROLL_OK || is_gone(v->from, key))
		return interrupted(); /* damage was told by the scrub */
	name_item(v, row.object);
	status = roll_snap_dzone(v->from, row.object, &number, &other);
	if (status == ROLL_ENOENT || (status == ROLL_OK && number != read_number(key))) {
		if (!v->is_reverse)
			report(v, "left over", "the number belongs to no DNSZone, nor is it gone");
		return interrupted();
	}
	if (status == ROLL_OK)
		status = roll_snap_dzone(v->in, row.object, &number, &other);
	if (status == ROLL_ENOENT) {
		report(v, lacking(v), lacking_text(v));
		return interrupted();
	}
	if (status != ROLL_OK)
		return status;
	if (v->is_reverse)
		return interrupted();
	if (!roll_name_eq(&row.domain, &other.domain))
		report(v, "differs", "it stands under another domain than its spec names");
	if (row.cut_count != other.cut_count)
		report(v, "differs", "its delegations are counted wrongly");
	if (row.name_count != other.name_count)
		report(v, "differs", "its names are counted wrongly");
	return interrupted();
}

static void name_row_item(struct verify *v, struct roll_str key)
{
	struct roll_name name;

	roll_buf_reset(&v->item);
	if (v->number_is == NUMBER_STRAY ||
	    roll_name_from_key(key.p + 4, key.n - 4, &v->dzone.domain, &name) != ROLL_OK) {
		roll_buf_printf(&v->item, "number %u, ", v->number);
		roll_buf_add_shown(&v->item, roll_str_n(key.p + 4, key.n - 4), 600);
		return;
	}
	roll_name_print(&name, ROLL_DOT_NONE, &v->item);
	roll_buf_add_c(&v->item, " of DNSZone ");
	roll_buf_add_shown(&v->item, v->dzone.object, 600);
}

/* What the number of the row is called in the other view. */
static enum roll_status settle_number(struct verify *v, struct roll_str number_key)
{
	struct roll_dzone_row ignored;
	struct roll_str value;
	enum roll_status status;
	uint32_t own;

	v->number = read_number(number_key);
	v->has_number = true;
	v->number_is = NUMBER_STRAY;
	v->other_number = 0;
	if (is_gone(v->from, number_key)) {
		v->number_is = NUMBER_GONE;
		return ROLL_OK;
	}
	status = roll_snap_raw_get(v->from, "dzones", number_key, &value);
	if (status == ROLL_OK)
		status = roll_dzone_row_decode(value, &v->dzone);
	if (status == ROLL_OK)
		status = roll_snap_dzone(v->from, v->dzone.object, &own, &ignored);
	if (status == ROLL_OK && own != v->number)
		status = ROLL_ENOENT;
	if (status == ROLL_OK) {
		v->number_is = NUMBER_KNOWN;
		status = roll_snap_dzone(v->in, v->dzone.object, &v->other_number, &ignored);
	}
	return status == ROLL_ENOENT || status == ROLL_ECORRUPT ? ROLL_OK : status;
}

static const struct roll_claim *find_claim(const struct roll_claim *claims, size_t count,
					   const struct roll_claim *like)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (roll_str_eq(claims[i].object, like->object))
			return &claims[i];
	}
	return NULL;
}

static bool is_same_rrset(const struct roll_rrset *a, const struct roll_rrset *b)
{
	uint32_t i;

	if (a->type != b->type || a->has_ttl != b->has_ttl || a->ttl != b->ttl ||
	    a->count != b->count)
		return false;
	for (i = 0; i < a->count; i++) {
		if (!roll_str_eq(a->rdata[i], b->rdata[i]))
			return false;
	}
	return true;
}

/* Two rows of one name differ: say which claim does. */
static enum roll_status compare_claims(struct verify *v, struct roll_str real, struct roll_str want)
{
	struct roll_claim *a, *b;
	size_t a_count, b_count, i;
	const struct roll_claim *other;
	char shown[200], text[400];
	uint64_t before = v->differences;

	roll_arena_reset(&v->arena);
	roll_arena_reset(&v->other_arena);
	if (roll_claims_decode(real, &v->arena, &a, &a_count) != ROLL_OK ||
	    roll_claims_decode(want, &v->other_arena, &b, &b_count) != ROLL_OK) {
		report(v, "differs", "its row does not decode");
		return interrupted();
	}
	for (i = 0; i < a_count; i++) {
		roll_str_show(a[i].object, shown, sizeof shown);
		other = find_claim(b, b_count, &a[i]);
		if (!other) {
			snprintf(text, sizeof text, "a claim of %s, which does not mean it", shown);
			report(v, "left over", text);
		} else if (!is_same_rrset(&a[i].rrset, &other->rrset)) {
			snprintf(text, sizeof text, "the records of %s are not those of its spec",
				 shown);
			report(v, "differs", text);
		} else if (a[i].verdict != other->verdict) {
			snprintf(text, sizeof text, "the claim of %s is held to be %s, and is %s",
				 shown, roll_verdict_text(a[i].verdict),
				 roll_verdict_text(other->verdict));
			report(v, "differs", text);
		}
	}
	for (i = 0; i < b_count; i++) {
		if (find_claim(a, a_count, &b[i]))
			continue;
		snprintf(text, sizeof text, "the claim of %s",
			 roll_str_show(b[i].object, shown, sizeof shown));
		report(v, "missing", text);
	}
	if (v->differences == before)
		report(v, "differs", "its row is not as it would be written");
	return interrupted();
}

static enum roll_status compare_name(void *ctx, struct roll_str key, struct roll_str value)
{
	struct verify *v = ctx;
	char other_key[512];
	struct roll_str other;
	enum roll_status status;

	if (key.n < 4 || key.n > sizeof other_key)
		return interrupted();
	if (!v->has_number || read_number(key) != v->number) {
		status = settle_number(v, roll_str_n(key.p, 4));
		if (status != ROLL_OK)
			return status;
	}
	if (v->number_is == NUMBER_GONE) {
		v->sweep += !v->is_reverse;
		return interrupted();
	}
	v->names += !v->is_reverse;
	other_key[0] = (char)(v->other_number >> 24);
	other_key[1] = (char)(v->other_number >> 16);
	other_key[2] = (char)(v->other_number >> 8);
	other_key[3] = (char)v->other_number;
	memcpy(other_key + 4, key.p + 4, key.n - 4);
	status = v->number_is == NUMBER_STRAY || !v->other_number
			 ? ROLL_ENOENT
			 : roll_snap_raw_get(v->in, "names", roll_str_n(other_key, key.n), &other);
	if (status == ROLL_OK && (v->is_reverse || roll_str_eq(value, other)))
		return interrupted();
	if (status != ROLL_OK && status != ROLL_ENOENT)
		return status;
	name_row_item(v, key);
	if (status == ROLL_OK)
		return compare_claims(v, value, other);
	report(v, lacking(v), lacking_text(v));
	return interrupted();
}

/* --- domains, classes, indexes --- */

static void name_domain_item(struct verify *v, struct roll_str key)
{
	struct roll_name name;

	roll_buf_reset(&v->item);
	/* A zero byte stands before the name, so that the root has a key too. */
	if (key.n && roll_name_from_key(key.p + 1, key.n - 1, &roll_name_root, &name) == ROLL_OK)
		roll_name_print(&name, ROLL_DOT_NONE, &v->item);
	else
		roll_buf_add_shown(&v->item, key, 600);
}

static bool is_same_domain(const struct roll_domain_row *a, const struct roll_domain_row *b)
{
	uint32_t i;

	if (a->claim_count != b->claim_count)
		return false;
	for (i = 0; i < a->claim_count; i++) {
		if (!roll_str_eq(a->claims[i].object, b->claims[i].object) ||
		    !roll_str_eq(a->claims[i].uid, b->claims[i].uid) ||
		    !roll_str_eq(a->claims[i].class_name, b->claims[i].class_name) ||
		    a->claims[i].created_s != b->claims[i].created_s)
			return false;
	}
	return true;
}

static enum roll_status compare_domain(void *ctx, struct roll_str key, struct roll_str value)
{
	struct roll_domain_row row, other_row;
	struct verify *v = ctx;
	struct roll_str other;
	enum roll_status status;

	roll_arena_reset(&v->arena);
	roll_arena_reset(&v->other_arena);
	if (roll_domain_row_decode(value, &v->arena, &row) != ROLL_OK)
		return interrupted(); /* told by the scrub */
	status = roll_snap_raw_get(v->in, "domains", key, &other);
	if (status != ROLL_OK && status != ROLL_ENOENT)
		return status;
	name_domain_item(v, key);
	if (status == ROLL_ENOENT) {
		/* Rows without claims keep id and serial of a zone that was. */
		if (row.claim_count)
			report(v, lacking(v), lacking_text(v));
	} else if (!v->is_reverse &&
		   (roll_domain_row_decode(other, &v->other_arena, &other_row) != ROLL_OK ||
		    !is_same_domain(&row, &other_row))) {
		report(v, "differs", "the DNSZones that claim it are others");
	}
	return interrupted();
}

static enum roll_status compare_class(void *ctx, struct roll_str key, struct roll_str value)
{
	struct roll_class_row row, other_row;
	struct verify *v = ctx;
	struct roll_str other;
	enum roll_status status;

	status = roll_snap_raw_get(v->in, "classes", key, &other);
	if (status != ROLL_OK && status != ROLL_ENOENT)
		return status;
	name_item(v, key);
	if (status == ROLL_ENOENT)
		report(v, lacking(v), lacking_text(v));
	else if (!v->is_reverse && roll_class_row_decode(value, &row) == ROLL_OK &&
		 (roll_class_row_decode(other, &other_row) != ROLL_OK ||
		  !roll_str_eq(row.controller, other_row.controller) ||
		  row.has_default_ttl != other_row.has_default_ttl ||
		  row.default_ttl != other_row.default_ttl ||
		  !roll_str_eq(row.nameservers, other_row.nameservers)))
		report(v, "differs", "it is not as its spec says");
	return interrupted();
}

static enum roll_status compare_index(void *ctx, struct roll_str key, struct roll_str value)
{
	struct verify *v = ctx;
	struct roll_str other;
	enum roll_status status;

	(void)value;
	status = roll_snap_raw_get(v->in, v->table, key, &other);
	if (status == ROLL_ENOENT) {
		name_item(v, roll_str_n(key.p + 8, key.n > 8 ? key.n - 8 : 0));
		report(v, lacking(v), lacking_text(v));
		status = ROLL_OK;
	}
	return status != ROLL_OK ? status : interrupted();
}

static enum roll_status compare_tables(struct verify *v)
{
	static const struct {
		const char *table;
		roll_on_raw on_raw;
	} tables[] = {
		{"classes", compare_class}, {"domains", compare_domain}, {"dzones", compare_dzone},
		{"names", compare_name},    {"byzone", compare_index},	 {"byscope", compare_index},
	};
	enum roll_status status = ROLL_OK;
	size_t i;
	int pass;

	for (i = 0; status == ROLL_OK && i < sizeof tables / sizeof *tables; i++) {
		v->table = tables[i].table;
		for (pass = 0; status == ROLL_OK && pass < 2; pass++) {
			v->is_reverse = pass == 1;
			v->from = v->is_reverse ? v->want : v->real;
			v->in = v->is_reverse ? v->real : v->want;
			v->has_number = false;
			status = roll_snap_raw_walk(v->from, v->table, tables[i].on_raw, v);
		}
	}
	return status;
}

static void conclude(struct verify *v)
{
	struct roll_out *out = &v->ctl->out;

	if (v->ctl->is_json) {
		roll_out_close(out);
		roll_out_u64(out, "objects", v->objects);
		roll_out_u64(out, "names", v->names);
		roll_out_u64(out, "sweepPending", v->sweep);
		roll_out_bool(out, "good", v->differences == 0);
		return;
	}
	roll_out_text(out, "%llu objects, %llu names: ", (unsigned long long)v->objects,
		      (unsigned long long)v->names);
	if (v->differences)
		roll_out_text(out,
			      "%llu differences; rollcall-sync builds a new view if the "
			      "folder that `current` points to is removed while it is stopped\n",
			      (unsigned long long)v->differences);
	else
		roll_out_text(out, "the view is what the objects mean\n");
	if (v->sweep)
		roll_out_text(out,
			      "%llu rows of zones that are gone wait to be swept; they answer "
			      "nothing\n",
			      (unsigned long long)v->sweep);
}

int roll_cmd_verify(struct roll_ctl *ctl)
{
	struct verify v = {.ctl = ctl};
	struct roll_ctl_view view;
	enum roll_status status;
	int code;

	if (!roll_ctl_open(ctl, true, &view, &code))
		return code;
	v.real = view.snap;
	roll_arena_init(&v.arena, ARENA_LIMIT);
	roll_arena_init(&v.other_arena, ARENA_LIMIT);
	roll_buf_init(&v.item, (size_t)16 << 10);
	if (ctl->is_json) {
		roll_out_open(&ctl->out, NULL, '{');
		roll_out_open(&ctl->out, "differences", '[');
	}
	status = roll_snap_scrub(v.real, on_damage, &v);
	if (status == ROLL_OK)
		status = build(&v);
	if (status == ROLL_OK)
		status = compare_objects(&v);
	if (status == ROLL_OK)
		status = compare_tables(&v);
	if (status == ROLL_OK) {
		conclude(&v);
		code = v.differences ? ROLL_EXIT_FINDINGS : ROLL_EXIT_OK;
	} else {
		if (ctl->is_json)
			roll_out_close(&ctl->out);
		roll_ctl_complain(ctl, "it could not be verified: %s%s%s", roll_status_text(status),
				  v.err.text[0] ? ": " : "", v.err.text);
		code = ROLL_EXIT_SOURCE;
	}
	if (ctl->is_json)
		roll_out_close(&ctl->out);
	roll_buf_fini(&v.item);
	roll_arena_fini(&v.arena);
	roll_arena_fini(&v.other_arena);
	roll_scratch_free(v.scratch);
	roll_ctl_close(&view);
	return code;
}
