/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * main() of a fuzz target outside of libFuzzer: every file of the target's seed folder is run, and
 * every file cut short at each of its first bytes, since most parsers fail at the end of input. The
 * result is TAP. The folder is $srcdir/tests/fuzz/<program>.in, or that given as an argument.
 */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CUTS_MAX 1024

static void run_copy(const char *data, size_t n)
{
	/* In memory of just this size, so that the address sanitizer sees one byte too many. */
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	memcpy(copy, data, n);
	LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

/* The whole file, or NULL. */
static char *read_file(const char *path, size_t *out_n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *data = NULL;
	size_t n = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		goto out;
	data = malloc((size_t)st.st_size + 1);
	while (data && n < (size_t)st.st_size) {
		ssize_t got = read(fd, data + n, (size_t)st.st_size - n);

		if (got <= 0) {
			free(data);
			data = NULL;
			break;
		}
		n += (size_t)got;
	}
	*out_n = n;
out:
	if (fd >= 0)
		close(fd);
	return data;
}

static int run_file(const char *path)
{
	size_t n;
	char *data = read_file(path, &n);

	if (!data)
		return -1;
	for (size_t cut = 0; cut < n && cut < CUTS_MAX; cut++)
		run_copy(data, cut);
	run_copy(data, n);
	free(data);
	return 0;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');
	const char *srcdir = getenv("srcdir");
	char folder[2048], path[4096];
	struct dirent **entries = NULL;
	int count, failed = 0;

	if (argc > 1)
		snprintf(folder, sizeof folder, "%s", argv[1]);
	else
		snprintf(folder, sizeof folder, "%s/tests/fuzz/%s.in", srcdir ? srcdir : ".",
			 slash ? slash + 1 : argv[0]);
	count = scandir(folder, &entries, is_visible, alphasort);
	if (count <= 0) {
		printf("Bail out! no seeds in %s\n", folder);
		return 1;
	}
	printf("1..%d\n", count);
	for (int i = 0; i < count; i++) {
		int bad;

		snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
		bad = run_file(path);
		printf("%s %d - %s\n", bad ? "not ok" : "ok", i + 1, entries[i]->d_name);
		fflush(stdout);
		failed += bad != 0;
		free(entries[i]);
	}
	free(entries);
	return failed ? 1 : 0;
}
