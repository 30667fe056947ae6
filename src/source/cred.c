/* SPDX-License-Identifier: Apache-2.0 */
#include "source/cred.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "base/json.h"
#include "base/log.h"
#include "source/exec.h"
#include "source/secret.h"

#define PLUGIN_DEADLINE_MS 60000
/* Not used any more this long before it expires: a request takes time, and clocks differ. */
#define EXPIRY_MARGIN_MS 5000

struct roll_cred_wait {
	struct roll_cred *cred;
	struct roll_cred_wait *next;
	roll_cred_on_identity on_identity;
	void *ctx;
};

struct roll_cred {
	struct roll_loop *loop;
	const struct roll_clock *clock;
	struct roll_cred_spec spec;
	struct event *kick; /* answers waits that need no plugin */
	struct roll_cred_wait *waits;
	struct roll_cred_wait *answering; /* waits whose turn it is */
	struct roll_exec *running;
	/* What the plugin gave; for one run at least, whatever it says about expiry. */
	struct roll_buf token, cert, key;
	bool has_given;
	int64_t expires_ms; /* wall clock; INT64_MAX: when refused */
};

static void free_strings(char **list)
{
	for (char **at = list; at && *at; at++) {
		explicit_bzero(*at, strlen(*at));
		free(*at);
	}
	free(list);
}

void roll_cred_spec_fini(struct roll_cred_spec *spec)
{
	free(spec->server);
	free(spec->server_name);
	if (spec->proxy)
		explicit_bzero(spec->proxy, strlen(spec->proxy));
	free(spec->proxy);
	roll_secret_fini(&spec->ca.data);
	roll_secret_fini(&spec->cert.data);
	roll_secret_fini(&spec->key.data);
	free(spec->ca.file);
	free(spec->cert.file);
	free(spec->key.file);
	roll_secret_fini(&spec->token);
	free(spec->token_file);
	free(spec->plugin.command);
	free_strings(spec->plugin.args);
	free_strings(spec->plugin.env);
	free(spec->plugin.api_version);
	free(spec->plugin.hint);
	json_decref(spec->plugin.config);
	free(spec->ns);
	memset(spec, 0, sizeof *spec);
}

static bool is_loopback(const char *host)
{
	return strcmp(host, "localhost") == 0 || strncmp(host, "127.", 4) == 0 ||
	       strcmp(host, "[::1]") == 0;
}

static bool has_pem(const struct roll_cred_pem *pem)
{
	return pem->data.n || pem->file;
}

enum roll_status roll_cred_spec_check(const struct roll_cred_spec *spec, struct roll_err *err)
{
	static const CURLUPart unwanted[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
					     CURLUPART_FRAGMENT};
	char *scheme = NULL, *host = NULL;
	enum roll_status status = ROLL_EINVAL;
	CURLU *parts = curl_url();

	if (!parts)
		return roll_err_set(err, ROLL_ENOMEM, NULL, "no memory for the URL");
	if (!spec->server || curl_url_set(parts, CURLUPART_URL, spec->server, 0) ||
	    curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) ||
	    curl_url_get(parts, CURLUPART_HOST, &host, 0)) {
		roll_err_set(err, status, "server", "is not a URL like https://host:6443");
		goto out;
	}
	for (size_t i = 0; i < sizeof unwanted / sizeof *unwanted; i++) {
		char *part = NULL;

		if (!curl_url_get(parts, unwanted[i], &part, 0)) {
			curl_free(part);
			roll_err_set(err, status, "server",
				     "has more than scheme, host, port and path");
			goto out;
		}
	}
	if (strcmp(scheme, "https") != 0 && (strcmp(scheme, "http") != 0 || !is_loopback(host))) {
		roll_err_set(err, status, "server",
			     "is not https (plain http is for loopback addresses alone)");
		goto out;
	}
	if (has_pem(&spec->cert) != has_pem(&spec->key)) {
		roll_err_set(err, status, "user",
			     "has one of client certificate and client key, not both");
		goto out;
	}
	status = ROLL_OK;
out:
	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(parts);
	return status;
}

static char *join(const char *a, const char *b)
{
	struct roll_buf buf;

	roll_buf_init(&buf, 8192);
	roll_buf_printf(&buf, "%s%s", a, b);
	if (buf.status) {
		roll_buf_fini(&buf);
		return NULL;
	}
	return buf.p; /* the caller frees it */
}

/* The pod's namespace; NULL if it cannot be had, which is no error here. */
static char *read_namespace(const char *folder)
{
	char *path = join(folder, "/namespace"), text[64], *out = NULL;
	struct roll_str ns;
	FILE *file = path ? fopen(path, "re") : NULL;

	if (file) {
		ns = roll_str_trim(roll_str_n(text, fread(text, 1, sizeof text, file)));
		fclose(file);
		out = ns.n ? strndup(ns.p, ns.n) : NULL;
	}
	free(path);
	return out;
}

enum roll_status roll_cred_in_cluster(struct roll_cred_spec *out, const char *folder,
				      const char *host, const char *port, struct roll_err *err)
{
	bool is_ipv6 = host && strchr(host, ':') && host[0] != '[';
	enum roll_status status;
	struct roll_buf url;
	uint16_t number;

	memset(out, 0, sizeof *out);
	if (!folder)
		folder = "/var/run/secrets/kubernetes.io/serviceaccount";
	if (!host || !*host || !port || roll_str_u16(roll_str_c(port), UINT16_MAX, &number))
		return roll_err_set(err, ROLL_EINVAL, "in-cluster",
				    "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT do not "
				    "name a server: not in a pod?");
	roll_buf_init(&url, 1024);
	roll_buf_printf(&url, is_ipv6 ? "https://[%s]:%u" : "https://%s:%u", host, number);
	out->server = url.status ? NULL : url.p;
	if (!out->server)
		roll_buf_fini(&url);
	out->ca.file = join(folder, "/ca.crt");
	out->token_file = join(folder, "/token");
	if (!out->server || !out->ca.file || !out->token_file) {
		roll_cred_spec_fini(out);
		return roll_err_set(err, ROLL_ENOMEM, NULL, "no memory for credentials");
	}
	out->ns = read_namespace(folder);
	status = roll_cred_spec_check(out, err);
	if (!status && access(out->token_file, R_OK))
		status = roll_err_set(err, ROLL_EDENIED, out->token_file,
				      "cannot be read: no service account is mounted");
	if (status)
		roll_cred_spec_fini(out);
	return status;
}

/* --- the plugin --- */

static void forget_given(struct roll_cred *cred)
{
	roll_secret_fini(&cred->token);
	roll_secret_fini(&cred->cert);
	roll_secret_fini(&cred->key);
	cred->has_given = false;
}

/* KUBERNETES_EXEC_INFO: what a plugin may know of us. Appended to out. */
static enum roll_status exec_info(const struct roll_cred_spec *spec, struct roll_buf *out)
{
	enum roll_status status = ROLL_ENOMEM;
	struct roll_buf ca = {0}, ca_base64 = {0};
	json_t *info = json_pack("{s:s, s:s, s:{s:b}}", "apiVersion", spec->plugin.api_version,
				 "kind", "ExecCredential", "spec", "interactive", 0);
	json_t *cluster = NULL;

	if (!info)
		return ROLL_ENOMEM;
	if (spec->plugin.wants_cluster) {
		if (spec->ca.data.n)
			status = roll_secret_set(&ca, roll_buf_str(&spec->ca.data));
		else
			status = spec->ca.file ? roll_secret_read(&ca, spec->ca.file, NULL)
					       : ROLL_OK;
		if (status)
			goto out;
		status = ROLL_ENOMEM;
		cluster = json_pack("{s:s, s:s*, s:s*, s:O*}", "server", spec->server,
				    "tls-server-name", spec->server_name, "proxy-url", spec->proxy,
				    "config", spec->plugin.config);
		if (!cluster ||
		    (spec->is_insecure &&
		     json_object_set_new(cluster, "insecure-skip-tls-verify", json_true())))
			goto out;
		if (ca.n && (roll_secret_encode(&ca_base64, roll_buf_str(&ca)) ||
			     json_object_set_new(cluster, "certificate-authority-data",
						 json_stringn(ca_base64.p, ca_base64.n))))
			goto out;
		if (json_object_set(json_object_get(info, "spec"), "cluster", cluster))
			goto out;
	}
	status = roll_json_print(info, out);
out:
	roll_secret_fini(&ca);
	roll_secret_fini(&ca_base64);
	json_decref(cluster);
	json_decref(info);
	return status;
}

static bool take_text(struct roll_buf *to, const json_t *from, const char *key)
{
	struct roll_str text = roll_json_str(from, key);

	return text.n == 0 || !roll_secret_set(to, text);
}

/* Read an ExecCredential. */
static enum roll_status take_given(struct roll_cred *cred, struct roll_str output,
				   struct roll_err *err)
{
	enum roll_status status = ROLL_EINVAL;
	json_t *credential = NULL, *given;
	struct roll_str expires;
	int64_t expires_s;

	/* Details of a syntax error would show what must not be seen. */
	if (roll_json_parse(output, &credential, NULL)) {
		roll_err_set(err, status, NULL, "it did not print one JSON object");
		goto out;
	}
	given = roll_json_object(credential, "status");
	if (!roll_str_eq_c(roll_json_str(credential, "kind"), "ExecCredential") ||
	    !roll_str_eq_c(roll_json_str(credential, "apiVersion"),
			   cred->spec.plugin.api_version)) {
		roll_err_set(err, status, NULL, "it did not print an ExecCredential of %s",
			     cred->spec.plugin.api_version);
		goto out;
	}
	forget_given(cred);
	if (!take_text(&cred->token, given, "token") ||
	    !take_text(&cred->cert, given, "clientCertificateData") ||
	    !take_text(&cred->key, given, "clientKeyData")) {
		roll_err_set(err, status, NULL, "what it printed is too large");
		goto out;
	}
	if (!cred->cert.n != !cred->key.n || (cred->token.n == 0 && cred->cert.n == 0)) {
		roll_err_set(err, status, NULL,
			     "it printed neither a token nor a certificate with its key");
		goto out;
	}
	expires = roll_json_str(given, "expirationTimestamp");
	cred->expires_ms = INT64_MAX;
	if (expires.n) {
		if (roll_time_parse(expires, &expires_s)) {
			roll_err_set(err, status, NULL, "expirationTimestamp is no time");
			goto out;
		}
		cred->expires_ms = expires_s * 1000;
	}
	cred->has_given = true;
	status = ROLL_OK;
out:
	if (status)
		forget_given(cred);
	if (credential)
		roll_secret_wipe_json(credential);
	json_decref(credential);
	return status;
}

/* --- answering --- */

static enum roll_status pem_text(const struct roll_cred_pem *pem, struct roll_buf *room,
				 struct roll_str *out, struct roll_err *err)
{
	enum roll_status status = ROLL_OK;

	if (pem->data.n) {
		*out = roll_buf_str(&pem->data);
	} else if (pem->file) {
		status = roll_secret_read(room, pem->file, err);
		*out = roll_buf_str(room);
		/* No authority at all would mean those of the system. */
		if (!status && out->n == 0)
			status = roll_err_set(err, ROLL_EINVAL, pem->file, "is empty");
	}
	return status;
}

/* RFC 6750, 2.1: what a token is made of; a line end in it would start another header. */
static bool is_token(struct roll_str token)
{
	for (size_t i = 0; i < token.n; i++) {
		if (token.p[i] <= ' ' || token.p[i] > '~')
			return false;
	}
	return token.n > 0;
}

static void answer(struct roll_cred *cred, const struct roll_err *failure)
{
	struct roll_buf ca = {0}, cert = {0}, key = {0}, token = {0};
	struct roll_http_identity identity = {
		.server_name = cred->spec.server_name,
		.proxy = cred->spec.proxy,
		.is_insecure = cred->spec.is_insecure,
	};
	struct roll_err err = {0};
	bool has_token = false;

	if (failure) {
		err = *failure;
		goto out;
	}
	if (pem_text(&cred->spec.ca, &ca, &identity.ca, &err))
		goto out;
	if (cred->has_given && cred->cert.n) {
		identity.cert = roll_buf_str(&cred->cert);
		identity.key = roll_buf_str(&cred->key);
	} else if (pem_text(&cred->spec.cert, &cert, &identity.cert, &err) ||
		   pem_text(&cred->spec.key, &key, &identity.key, &err)) {
		goto out;
	}
	if (cred->spec.token_file) {
		if (roll_secret_read(&token, cred->spec.token_file, &err))
			goto out;
		identity.token = roll_str_trim(roll_buf_str(&token));
		has_token = true;
	} else if (cred->spec.token.n || (cred->has_given && cred->token.n)) {
		identity.token = roll_str_trim(
			roll_buf_str(cred->has_given ? &cred->token : &cred->spec.token));
		has_token = true;
	}
	if (has_token && !is_token(identity.token))
		roll_err_set(&err, ROLL_EINVAL,
			     cred->spec.token_file ? cred->spec.token_file : "token",
			     "is empty or has bytes that no token has");
out:
	/* Callbacks may ask again, to be answered another time, and cancel what is not answered. */
	cred->answering = cred->waits;
	cred->waits = NULL;
	while (cred->answering) {
		struct roll_cred_wait *wait = cred->answering;

		cred->answering = wait->next;
		wait->on_identity(wait->ctx, err.code ? NULL : &identity, err.code ? &err : NULL);
		free(wait);
	}
	roll_secret_fini(&ca);
	roll_secret_fini(&cert);
	roll_secret_fini(&key);
	roll_secret_fini(&token);
}

static void on_plugin_done(void *ctx, enum roll_status status, struct roll_str output,
			   const struct roll_err *plugin_err)
{
	struct roll_cred *cred = ctx;
	struct roll_err err = {0};
	char shown[128];

	cred->running = NULL;
	roll_str_show(roll_str_c(cred->spec.plugin.command), shown, sizeof shown);
	if (status) {
		roll_err_set(&err, ROLL_EDENIED, shown, "credential plugin %s", plugin_err->text);
	} else if (take_given(cred, output, &err)) {
		struct roll_err why = err;

		roll_err_set(&err, ROLL_EDENIED, shown, "credential plugin: %s", why.text);
	}
	answer(cred, err.code ? &err : NULL);
}

static enum roll_status start_plugin(struct roll_cred *cred, struct roll_err *err)
{
	const struct roll_cred_plugin *plugin = &cred->spec.plugin;
	size_t args = 0, extra = 0, ours = 0, n = 0;
	enum roll_status status = ROLL_ENOMEM;
	const char **argv = NULL, **env = NULL;
	struct roll_exec_spec spec;
	struct roll_buf info;

	roll_buf_init(&info, ROLL_SECRET_LIMIT_BYTES * 2);
	roll_buf_add_c(&info, "KUBERNETES_EXEC_INFO=");
	while (plugin->args && plugin->args[args])
		args++;
	while (plugin->env && plugin->env[extra])
		extra++;
	while (environ[ours])
		ours++;
	argv = calloc(args + 2, sizeof *argv);
	env = calloc(ours + extra + 2, sizeof *env);
	if (!argv || !env || exec_info(&cred->spec, &info))
		goto out;
	argv[0] = plugin->command;
	for (size_t i = 0; i < args; i++)
		argv[i + 1] = plugin->args[i];
	/* The first of a name counts for most programs: what was configured comes first. */
	env[n++] = info.p;
	for (size_t i = 0; i < extra; i++)
		env[n++] = plugin->env[i];
	for (size_t i = 0; i < ours; i++)
		env[n++] = environ[i];
	spec = (struct roll_exec_spec){argv, env, PLUGIN_DEADLINE_MS, on_plugin_done, cred};
	status = roll_exec_start(cred->loop, &spec, &cred->running, err);
out:
	if (status == ROLL_ENOMEM)
		roll_err_set(err, status, NULL, "no memory for the credential plugin");
	roll_buf_fini(&info);
	free(argv);
	free(env);
	return status;
}

static void on_kick(evutil_socket_t fd, short what, void *ctx)
{
	struct roll_cred *cred = ctx;
	struct roll_err err = {0}, why;
	char shown[128];

	(void)fd;
	(void)what;
	if (!cred->waits || cred->running)
		return;
	if (cred->has_given && cred->expires_ms != INT64_MAX &&
	    cred->expires_ms - EXPIRY_MARGIN_MS <= roll_clock_wall_ms(cred->clock))
		forget_given(cred);
	if (!cred->spec.plugin.command || cred->has_given) {
		answer(cred, NULL);
	} else if (start_plugin(cred, &why)) {
		roll_str_show(roll_str_c(cred->spec.plugin.command), shown, sizeof shown);
		roll_err_set(&err, ROLL_EDENIED, shown, "credential plugin %s%s%s", why.text,
			     cred->spec.plugin.hint ? "; " : "",
			     cred->spec.plugin.hint ? cred->spec.plugin.hint : "");
		answer(cred, &err);
	}
}

enum roll_status roll_cred_new(struct roll_loop *loop, const struct roll_clock *clock,
			       struct roll_cred_spec *spec, struct roll_cred **out,
			       struct roll_err *err)
{
	struct roll_cred *cred = calloc(1, sizeof *cred);

	if (cred) {
		cred->kick = evtimer_new(roll_loop_base(loop), on_kick, cred);
		cred->loop = loop;
		cred->clock = clock;
		cred->spec = *spec;
		memset(spec, 0, sizeof *spec);
	}
	if (!cred || !cred->kick) {
		roll_cred_spec_fini(spec);
		roll_cred_free(cred);
		return roll_err_set(err, ROLL_ENOMEM, NULL, "no memory for credentials");
	}
	if (cred->spec.is_insecure)
		roll_log(ROLL_WARN, "server-not-verified",
			 "reason=\"the kubeconfig says insecure-skip-tls-verify\"");
	*out = cred;
	return ROLL_OK;
}

void roll_cred_free(struct roll_cred *cred)
{
	if (!cred)
		return;
	roll_exec_cancel(cred->running);
	while (cred->waits) {
		struct roll_cred_wait *wait = cred->waits;

		cred->waits = wait->next;
		free(wait);
	}
	if (cred->kick)
		event_free(cred->kick);
	forget_given(cred);
	roll_cred_spec_fini(&cred->spec);
	free(cred);
}

const char *roll_cred_server(const struct roll_cred *cred)
{
	return cred->spec.server;
}

struct roll_cred_wait *roll_cred_get(struct roll_cred *cred, roll_cred_on_identity on_identity,
				     void *ctx)
{
	struct roll_cred_wait *wait = calloc(1, sizeof *wait), **at = &cred->waits;

	if (!wait)
		return NULL;
	*wait = (struct roll_cred_wait){cred, NULL, on_identity, ctx};
	while (*at)
		at = &(*at)->next;
	*at = wait;
	event_active(cred->kick, EV_TIMEOUT, 1);
	return wait;
}

void roll_cred_cancel(struct roll_cred_wait *wait)
{
	struct roll_cred_wait **lists[2];

	if (!wait)
		return;
	lists[0] = &wait->cred->waits;
	lists[1] = &wait->cred->answering;
	for (size_t i = 0; i < 2; i++) {
		struct roll_cred_wait **at = lists[i];

		while (*at && *at != wait)
			at = &(*at)->next;
		if (*at) {
			*at = wait->next;
			free(wait);
			return;
		}
	}
}

void roll_cred_reject(struct roll_cred *cred)
{
	forget_given(cred);
}
