/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of library macros, for cppcheck, which reads no system headers. */
#define HASH_ITER(hh, head, el, tmp) for ((el) = (head), (tmp) = (el); (el); (el) = (tmp))
#define HASH_FIND(hh, head, key, len, out) ((out) = (head))
#define HASH_FIND_STR(head, key, out) ((out) = (head))
#define HASH_FIND_INT(head, key, out) ((out) = (head))
#define HASH_FIND_PTR(head, key, out) ((out) = (head))
#define json_object_foreach(object, key, value)                                   \
	for ((key) = json_object_iter_key(object); (key) && ((value) = (object)); \
	     (key) = json_object_iter_key(object))
#define json_array_foreach(array, index, value)                                            \
	for ((index) = 0;                                                                  \
	     (index) < json_array_size(array) && ((value) = json_array_get(array, index)); \
	     (index)++)
