/* SPDX-License-Identifier: Apache-2.0 */
#include "source/kubeconfig.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "source/secret.h"
#include "source/yaml.h"

#define FILES_MAX 32
#define NODES_MAX 100000
#define STRINGS_MAX 1000

struct file {
	json_t *root;
	char *folder;
};

struct files {
	struct file list[FILES_MAX];
	size_t count;
};

/* An entry of a named list, and the file it came from. */
struct entry {
	const json_t *body;
	const struct file *file;
};

static enum roll_status no_memory(struct roll_err *err)
{
	return roll_err_set(err, ROLL_ENOMEM, NULL, "no memory for a kubeconfig");
}

static char *copy(struct roll_str s)
{
	return strndup(s.n ? s.p : "", s.n);
}

static void free_files(struct files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		roll_secret_wipe_json(files->list[i].root);
		json_decref(files->list[i].root);
		free(files->list[i].folder);
	}
}

static enum roll_status on_document(void *ctx, json_t *document, size_t line)
{
	json_t **root = ctx;

	(void)line;
	if (*root || !json_is_object(document))
		return ROLL_EINVAL;
	*root = json_incref(document);
	return ROLL_OK;
}

/* Text becomes the next of files. */
static enum roll_status add_text(struct files *files, struct roll_str text, const char *path,
				 const char *folder, struct roll_err *err)
{
	struct roll_err detail = {0};
	json_t *root = NULL;
	enum roll_status status;
	struct file *file;

	if (files->count == FILES_MAX)
		return roll_err_set(err, ROLL_ELIMIT, path, "more than %d files", FILES_MAX);
	status = roll_yaml_read(text, NODES_MAX, on_document, &root, &detail);
	if (status || !root) {
		/* Where, but not what: the text around a mistake may be a secret. */
		status = roll_err_set(err, status == ROLL_ENOMEM ? status : ROLL_EINVAL, path,
				      "is not a kubeconfig%s%s", detail.where[0] ? ": " : "",
				      detail.where);
		goto out;
	}
	file = &files->list[files->count];
	file->folder = strdup(folder);
	if (!file->folder) {
		status = no_memory(err);
		goto out;
	}
	file->root = root;
	files->count++;
	return ROLL_OK;
out:
	if (root)
		roll_secret_wipe_json(root);
	json_decref(root);
	return status;
}

static enum roll_status add_path(struct files *files, struct roll_str path, struct roll_err *err)
{
	enum roll_status status = ROLL_ENOMEM;
	char *name = copy(path), *folder = NULL;
	struct roll_buf text = {0};
	size_t n = path.n;

	while (n > 0 && path.p[n - 1] != '/')
		n--;
	folder = n ? copy(roll_str_n(path.p, n)) : strdup("./");
	if (!name || !folder) {
		no_memory(err);
		goto out;
	}
	status = roll_secret_read(&text, name, err);
	if (!status)
		status = add_text(files, roll_buf_str(&text), name, folder, err);
out:
	roll_secret_fini(&text);
	free(name);
	free(folder);
	return status;
}

/* Members of named lists: {"name": NAME, KEY: {...}}. The first of the files that has it counts. */
static enum roll_status find(const struct files *files, const char *list, const char *key,
			     struct roll_str name, struct entry *out, struct roll_err *err)
{
	char shown[96];

	for (size_t i = 0; i < files->count; i++) {
		const json_t *entries = roll_json_array(files->list[i].root, list), *entry;
		const json_t *found = NULL;
		size_t at;

		json_array_foreach ((json_t *)(uintptr_t)entries, at, entry) {
			if (!roll_str_eq(roll_json_str(entry, "name"), name))
				continue;
			if (found)
				return roll_err_set(err, ROLL_EINVAL, list, "has \"%s\" twice",
						    roll_str_show(name, shown, sizeof shown));
			found = entry;
		}
		if (found) {
			out->body = roll_json_object(found, key);
			out->file = &files->list[i];
			if (!out->body)
				break;
			return ROLL_OK;
		}
	}
	return roll_err_set(err, ROLL_EINVAL, list, "has no usable \"%s\"",
			    roll_str_show(name, shown, sizeof shown));
}

/* A member that must be a string if it is there at all; absent, null and "" leave *out NULL. */
static enum roll_status take_string(const json_t *body, const char *key, char **out,
				    struct roll_err *err)
{
	const json_t *value = json_object_get(body, key);
	struct roll_str text = roll_json_str(body, key);

	if (!value || json_is_null(value) || (json_is_string(value) && text.n == 0))
		return ROLL_OK;
	/* Everything here ends up where NUL ends a string. */
	if (!json_is_string(value) || memchr(text.p, '\0', text.n))
		return roll_err_set(err, ROLL_EINVAL, key, "is not text");
	*out = copy(text);
	return *out ? ROLL_OK : no_memory(err);
}

static enum roll_status take_path(const struct entry *entry, const char *key, char **out,
				  struct roll_err *err)
{
	enum roll_status status = take_string(entry->body, key, out, err);
	struct roll_buf path;

	if (status || !*out || **out == '/')
		return status;
	roll_buf_init(&path, 8192);
	/* An entry that was found has a file. */
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
	roll_buf_add_c(&path, entry->file->folder);
	roll_buf_add_c(&path, *out);
	free(*out);
	*out = path.status ? NULL : path.p;
	if (*out)
		return ROLL_OK;
	roll_buf_fini(&path);
	return no_memory(err);
}

/* The bytes if they are there, else the path. */
static enum roll_status take_pem(const struct entry *entry, const char *data_key,
				 const char *file_key, struct roll_cred_pem *out,
				 struct roll_err *err)
{
	enum roll_status status;
	char *base64 = NULL;

	status = take_string(entry->body, data_key, &base64, err);
	if (status || !base64)
		return status ? status : take_path(entry, file_key, &out->file, err);
	if (roll_secret_decode(&out->data, roll_str_c(base64)) || out->data.n == 0)
		status = roll_err_set(err, ROLL_EINVAL, data_key, "is not base64");
	explicit_bzero(base64, strlen(base64));
	free(base64);
	return status;
}

static enum roll_status take_cluster(const struct entry *cluster, struct roll_cred_spec *out,
				     struct roll_err *err)
{
	const json_t *insecure = json_object_get(cluster->body, "insecure-skip-tls-verify");
	const json_t *extensions = roll_json_array(cluster->body, "extensions"), *extension;
	enum roll_status status;
	size_t i, n;

	status = take_string(cluster->body, "server", &out->server, err);
	if (!status)
		status = take_string(cluster->body, "tls-server-name", &out->server_name, err);
	if (!status)
		status = take_string(cluster->body, "proxy-url", &out->proxy, err);
	if (!status)
		status = take_pem(cluster, "certificate-authority-data", "certificate-authority",
				  &out->ca, err);
	if (status)
		return status;
	if (insecure && !json_is_boolean(insecure) && !json_is_null(insecure))
		return roll_err_set(err, ROLL_EINVAL, "insecure-skip-tls-verify",
				    "is neither true nor false");
	out->is_insecure = json_is_true(insecure);
	if (out->is_insecure && (out->ca.file || out->ca.data.n))
		return roll_err_set(err, ROLL_EINVAL, "insecure-skip-tls-verify",
				    "contradicts the certificate authority beside it");
	n = out->server ? strlen(out->server) : 0;
	while (n > 0 && out->server[n - 1] == '/')
		out->server[--n] = '\0';
	/* What a cluster has to say to its plugin (client.authentication.k8s.io, Cluster.config).
	 */
	json_array_foreach ((json_t *)(uintptr_t)extensions, i, extension) {
		const json_t *config = json_object_get(extension, "extension");

		if (config && !out->plugin.config &&
		    roll_str_eq_c(roll_json_str(extension, "name"),
				  "client.authentication.k8s.io/exec")) {
			out->plugin.config = json_deep_copy(config);
			if (!out->plugin.config)
				return no_memory(err);
		}
	}
	return ROLL_OK;
}

/* A list of strings (name NULL), or of {name, value} as "name=value". */
static enum roll_status take_strings(const json_t *body, const char *key, bool is_env, char ***out,
				     struct roll_err *err)
{
	const json_t *list = json_object_get(body, key), *item;
	size_t count = json_array_size(list), i;

	if (list && !json_is_array(list) && !json_is_null(list))
		return roll_err_set(err, ROLL_EINVAL, key, "is not a list");
	if (count > STRINGS_MAX)
		return roll_err_set(err, ROLL_ELIMIT, key, "has over %d items", STRINGS_MAX);
	*out = calloc(count + 1, sizeof **out);
	if (!*out)
		return no_memory(err);
	json_array_foreach ((json_t *)(uintptr_t)list, i, item) {
		struct roll_str name = roll_json_str(item, "name"), text;
		struct roll_buf line;

		if (!is_env) {
			text = roll_str_n(json_string_value(item), json_string_length(item));
			if (!json_is_string(item) || memchr(text.p, '\0', text.n))
				return roll_err_set(err, ROLL_EINVAL, key, "has what is not text");
			(*out)[i] = copy(text);
		} else {
			text = roll_json_str(item, "value");
			if (name.n == 0 || memchr(name.p, '=', name.n) ||
			    memchr(name.p, '\0', name.n) ||
			    (text.n && memchr(text.p, '\0', text.n)))
				return roll_err_set(err, ROLL_EINVAL, key,
						    "has an item without a usable name and value");
			roll_buf_init(&line, name.n + text.n + 1);
			roll_buf_add_str(&line, name);
			roll_buf_add_char(&line, '=');
			roll_buf_add_str(&line, text);
			(*out)[i] = line.status ? NULL : line.p;
			if (!(*out)[i])
				roll_buf_fini(&line);
		}
		if (!(*out)[i])
			return no_memory(err);
	}
	return ROLL_OK;
}

static enum roll_status take_plugin(const struct entry *user, struct roll_cred_plugin *out,
				    struct roll_err *err)
{
	struct entry exec = {roll_json_object(user->body, "exec"), user->file};
	enum roll_status status;
	char *mode = NULL;

	if (!exec.body)
		return ROLL_OK;
	status = take_string(exec.body, "command", &out->command, err);
	/* A bare name is looked for in PATH; anything with a slash is a path. */
	if (!status && out->command && strchr(out->command, '/')) {
		free(out->command);
		out->command = NULL;
		status = take_path(&exec, "command", &out->command, err);
	}
	if (!status)
		status = take_string(exec.body, "apiVersion", &out->api_version, err);
	if (!status)
		status = take_string(exec.body, "installHint", &out->hint, err);
	if (!status)
		status = take_string(exec.body, "interactiveMode", &mode, err);
	if (!status)
		status = take_strings(exec.body, "args", false, &out->args, err);
	if (!status)
		status = take_strings(exec.body, "env", true, &out->env, err);
	if (status)
		goto out;
	out->wants_cluster = json_is_true(json_object_get(exec.body, "provideClusterInfo"));
	if (!out->command)
		status = roll_err_set(err, ROLL_EINVAL, "exec", "has no command");
	else if (!out->api_version ||
		 (strcmp(out->api_version, "client.authentication.k8s.io/v1") != 0 &&
		  strcmp(out->api_version, "client.authentication.k8s.io/v1beta1") != 0))
		status = roll_err_set(err, ROLL_EINVAL, "exec",
				      "is not of client.authentication.k8s.io/v1 or v1beta1");
	else if (mode && strcmp(mode, "Always") == 0)
		status = roll_err_set(err, ROLL_EINVAL, "exec",
				      "needs a terminal (interactiveMode: Always)");
	if (!status && out->hint) {
		/* It is shown: one line, nothing that moves the cursor. */
		char shown[160];

		roll_str_show(roll_str_c(out->hint), shown, sizeof shown);
		free(out->hint);
		out->hint = strdup(shown);
		status = out->hint ? ROLL_OK : no_memory(err);
	}
out:
	free(mode);
	return status;
}

static enum roll_status take_user(const struct entry *user, struct roll_cred_spec *out,
				  struct roll_err *err)
{
	static const char *const refused[][2] = {
		{"username", "basic authentication, which API servers no longer have"},
		{"password", "basic authentication, which API servers no longer have"},
		{"auth-provider", "replaced by exec plugins"},
		{"as", "impersonation is not supported"},
		{"as-uid", "impersonation is not supported"},
		{"as-groups", "impersonation is not supported"},
		{"as-user-extra", "impersonation is not supported"},
	};
	enum roll_status status;
	char *token = NULL;

	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
		const json_t *value = json_object_get(user->body, refused[i][0]);

		if (value && !json_is_null(value))
			return roll_err_set(err, ROLL_EINVAL, refused[i][0], "%s", refused[i][1]);
	}
	status = take_pem(user, "client-certificate-data", "client-certificate", &out->cert, err);
	if (!status)
		status = take_pem(user, "client-key-data", "client-key", &out->key, err);
	if (!status)
		status = take_string(user->body, "token", &token, err);
	if (!status && token && roll_secret_set(&out->token, roll_str_c(token)))
		status = no_memory(err);
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
	if (!status)
		status = take_path(user, "tokenFile", &out->token_file, err);
	if (!status)
		status = take_plugin(user, &out->plugin, err);
	if (!status && out->plugin.command && (out->token.n || out->token_file))
		status = roll_err_set(err, ROLL_EINVAL, "exec", "contradicts the token beside it");
	return status;
}

static enum roll_status resolve(const struct files *files, const char *context,
				struct roll_cred_spec *out, struct roll_err *err)
{
	struct roll_str name = roll_str_c(context);
	struct entry chosen = {0}, cluster = {0}, user = {0};
	enum roll_status status;

	for (size_t i = 0; i < files->count && name.n == 0; i++)
		name = roll_json_str(files->list[i].root, "current-context");
	if (name.n == 0)
		return roll_err_set(err, ROLL_EINVAL, "current-context", "is not set");
	status = find(files, "contexts", "context", name, &chosen, err);
	if (!status)
		status = find(files, "clusters", "cluster", roll_json_str(chosen.body, "cluster"),
			      &cluster, err);
	if (!status)
		status = take_cluster(&cluster, out, err);
	if (!status && roll_json_str(chosen.body, "namespace").n)
		status = take_string(chosen.body, "namespace", &out->ns, err);
	/* A context without a user is anonymous. */
	if (!status && roll_json_str(chosen.body, "user").n) {
		status = find(files, "users", "user", roll_json_str(chosen.body, "user"), &user,
			      err);
		if (!status)
			status = take_user(&user, out, err);
	}
	if (!status)
		status = roll_cred_spec_check(out, err);
	return status;
}

enum roll_status roll_kubeconfig_parse(struct roll_str text, const char *folder,
				       const char *context, struct roll_cred_spec *out,
				       struct roll_err *err)
{
	struct files files = {.count = 0};
	enum roll_status status;

	memset(out, 0, sizeof *out);
	status = add_text(&files, text, "kubeconfig", folder, err);
	if (!status)
		status = resolve(&files, context, out, err);
	if (status)
		roll_cred_spec_fini(out);
	free_files(&files);
	return status;
}

enum roll_status roll_kubeconfig_read(const struct roll_kubeconfig_place *place,
				      const char *context, struct roll_cred_spec *out,
				      struct roll_err *err)
{
	struct roll_str rest = roll_str_c(place->environment);
	struct files files = {.count = 0};
	enum roll_status status = ROLL_OK;
	struct roll_buf path;

	memset(out, 0, sizeof *out);
	roll_buf_init(&path, 8192);
	if (place->path) {
		status = add_path(&files, roll_str_c(place->path), err);
	} else if (rest.n) {
		while (rest.n && !status) {
			struct roll_str one = roll_str_cut(&rest, ':');

			roll_buf_reset(&path);
			roll_buf_add_str(&path, one);
			if (one.n && !path.status && access(path.p, F_OK) == 0)
				status = add_path(&files, one, err);
		}
	} else if (place->home) {
		roll_buf_printf(&path, "%s/.kube/config", place->home);
		status = path.status ? no_memory(err) : add_path(&files, roll_buf_str(&path), err);
	}
	if (!status && files.count == 0)
		status = roll_err_set(err, ROLL_ENOENT, "kubeconfig", "no file was found");
	if (!status)
		status = resolve(&files, context, out, err);
	if (status)
		roll_cred_spec_fini(out);
	free_files(&files);
	roll_buf_fini(&path);
	return status;
}
