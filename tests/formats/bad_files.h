// SPDX-License-Identifier: Apache-2.0
// Files that are wrong, and what a user is told. Tests compare every row; docs/errors.md lists them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace accrue::test {

struct BadFile {
  std::string id;     ///< "csv.repeated_column"
  std::string what;   ///< for the documents: what is wrong with the file
  std::string bytes;  ///< the whole file
  std::string kind;   ///< "DataError"
  std::string text;   ///< the whole message; FILE stands for the path
};

/// A safetensors file of this header, with its length before it, and `num_bytes` bytes of data.
inline std::string safetensors_bytes(const std::string& header, size_t num_bytes) {
  std::string file;
  for (int byte = 0; byte < 8; ++byte) file += static_cast<char>(uint64_t{header.size()} >> (8 * byte));
  return file + header + std::string(num_bytes, '\0');
}

/// Read with Purpose::model.
inline std::vector<BadFile> bad_safetensors() {
  const auto one = [](const std::string& entry, size_t num_bytes) {
    return safetensors_bytes("{\"w\":" + entry + "}", num_bytes);
  };
  const std::string huge_length = std::string(7, '\0') + '\x80';
  return {
      {"safetensors.pointer", "a Git LFS pointer in place of the weights",
       "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 548105171\n",
       "ModelError",
       "FILE: is a Git LFS pointer, not the file itself; run \"git lfs pull\" in its repository or download "
       "the file"},
      {"safetensors.web_page", "a web page in place of the weights",
       "<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", "ModelError",
       "FILE: is a web page, not the file itself; the download went wrong: fetch the file itself"},
      {"safetensors.empty", "an empty file", "", "ModelError",
       "FILE: the file is empty; a safetensors file is needed: fetch it again"},
      {"safetensors.too_short", "five bytes", std::string("\x02\0\0\0\0", 5), "ModelError",
       "FILE: has 5 bytes; a safetensors file begins with 8 bytes that give its header's length: fetch it "
       "again"},
      {"safetensors.header_limit", "a header length of 2^63", huge_length + "{}", "ModelError",
       "FILE: claims a header of 9223372036854775808 bytes; at most 100000000 are allowed: it is damaged or "
       "no "
       "safetensors file"},
      {"safetensors.header_cut", "a file that ends inside its header",
       safetensors_bytes(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 0).substr(0, 30),
       "ModelError", "FILE: its header needs 54 bytes and 22 are there; the file is cut: fetch it again"},
      {"safetensors.header_start", "a header that is no object", safetensors_bytes("[]", 0), "ModelError",
       "FILE: its header does not begin with \"{\"; it is damaged or no safetensors file"},
      {"safetensors.broken_json", "a header that is no JSON", safetensors_bytes(R"({"w":)", 0), "ModelError",
       "FILE: header: is not valid JSON at byte 6; the file is damaged or of another kind"},
      {"safetensors.broken_utf8", "a tensor name that is no UTF-8",
       safetensors_bytes("{\"\xE6\":{\"dtype\":\"F32\"}}", 0), "ModelError",
       "FILE: header: is not valid JSON at byte 4; the file is damaged or of another kind"},
      {"safetensors.deep", "a header nested beyond reason",
       safetensors_bytes("{\"w\":" + std::string(1000, '['), 0), "ModelError",
       "FILE: header: is nested deeper than 64 levels; the file is damaged or of another kind"},
      {"safetensors.number_range", "a number beyond every type", one("1e999", 0), "ModelError",
       "FILE: header: holds a number that is too large for JSON; the file is damaged or of another kind"},
      {"safetensors.duplicate_tensor", "two tensors of one name",
       safetensors_bytes(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                         R"("w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                         2),
       "ModelError", "FILE: header: the key \"w\" stands twice in one object; keep one"},
      {"safetensors.metadata", "metadata that are no texts",
       safetensors_bytes(R"({"__metadata__":{"epoch":3}})", 0), "ModelError",
       "FILE: __metadata__ holds \"epoch\", which is not a text; texts by name are needed; fetch the file or "
       "save it again"},
      {"safetensors.metadata_list", "metadata that are a list",
       safetensors_bytes(R"({"__metadata__":[]})", 0), "ModelError",
       "FILE: __metadata__ holds \"__metadata__\", which is not a text; texts by name are needed; fetch the "
       "file or save it again"},
      {"safetensors.entry", "an entry that is a number", one("3", 0), "ModelError",
       "FILE: tensor \"w\": its entry is no object with dtype, shape and data_offsets; fetch the file or "
       "save it again"},
      {"safetensors.no_dtype", "an entry without dtype", one(R"({"shape":[1],"data_offsets":[0,4]})", 4),
       "ModelError",
       "FILE: tensor \"w\": \"dtype\" is missing from its entry; fetch the file or save it again"},
      {"safetensors.unknown_key", "an entry with a key too many",
       one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"stride":[1]})", 4), "ModelError",
       "FILE: tensor \"w\": unknown key \"stride\" in its entry; dtype, shape and data_offsets are allowed; "
       "fetch the file or save it again"},
      {"safetensors.dtype", "a type of less than a byte",
       one(R"({"dtype":"F4","shape":[2],"data_offsets":[0,1]})", 1), "ModelError",
       "FILE: tensor \"w\": the type F4 is not supported; save it as F32, BF16, F16, F64 or an integer type"},
      {"safetensors.dtype_number", "a type that is a number",
       one(R"({"dtype":32,"shape":[1],"data_offsets":[0,4]})", 4), "ModelError",
       "FILE: tensor \"w\": the type 32 is not supported; save it as F32, BF16, F16, F64 or an integer type"},
      {"safetensors.negative_size", "a negative size",
       one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})", 4), "ModelError",
       "FILE: tensor \"w\": the shape [-1] is no list of whole numbers of at least 0; fetch the file or save "
       "it again"},
      {"safetensors.shape_text", "a shape that is no list",
       one(R"({"dtype":"F32","shape":"1","data_offsets":[0,4]})", 4), "ModelError",
       "FILE: tensor \"w\": the shape \"1\" is no list of whole numbers of at least 0; fetch the file or "
       "save it again"},
      {"safetensors.shape_overflow", "sizes whose product passes 2^64",
       one(R"({"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,4]})", 4), "ModelError",
       "FILE: tensor \"w\": the shape [4294967296,4294967296,2] has more bytes than can be counted; fetch "
       "the file or save it again"},
      {"safetensors.size", "a shape of 4 MB over 4 bytes",
       one(R"({"dtype":"F32","shape":[1000,1000],"data_offsets":[0,4]})", 4), "ModelError",
       "FILE: tensor \"w\": has 4 bytes and needs 4000000 for F32 [1000,1000]; fetch the file or save it "
       "again"},
      {"safetensors.offsets_order", "an end before the begin",
       one(R"({"dtype":"F32","shape":[1],"data_offsets":[8,4]})", 8), "ModelError",
       "FILE: tensor \"w\": the data_offsets [8,4] are no pair of whole numbers, begin and end, with begin "
       "<= end; fetch the file or save it again"},
      {"safetensors.offsets_three", "three offsets",
       one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})", 8), "ModelError",
       "FILE: tensor \"w\": the data_offsets [0,4,8] are no pair of whole numbers, begin and end, with begin "
       "<= end; fetch the file or save it again"},
      {"safetensors.offsets_huge", "an offset of 2^64 - 1",
       one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]})", 4), "ModelError",
       "FILE: tensor \"w\": the data_offsets [0,18446744073709551615] are no pair of whole numbers, begin "
       "and end, with begin <= end; fetch the file or save it again"},
      {"safetensors.cut", "a file that ends inside a tensor",
       one(R"({"dtype":"F32","shape":[4],"data_offsets":[0,16]})", 10), "ModelError",
       "FILE: tensor \"w\": its data end at byte 16 and 10 bytes are there; the file is cut: fetch it again"},
      {"safetensors.overlap", "two tensors that share a byte",
       safetensors_bytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                         7),
       "ModelError",
       "FILE: tensor \"b\": its data begin at byte 3, inside the tensor before, which ends at 4; fetch the "
       "file or save it again"},
      {"safetensors.hole", "a byte between two tensors",
       safetensors_bytes(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
                         9),
       "ModelError",
       "FILE: tensor \"b\": its data begin at byte 5, but the tensor before ends at 4; the bytes between "
       "belong to nothing; fetch the file or save it again"},
      {"safetensors.rest", "bytes after the last tensor",
       one(R"({"dtype":"U8","shape":[4],"data_offsets":[0,4]})", 6), "ModelError",
       "FILE: has 6 bytes of data and its tensors need 4; the bytes after the last tensor belong to nothing; "
       "fetch the file or save it again"},
  };
}

/// Read with read_csv.
inline std::vector<BadFile> bad_csv() {
  const std::string nul("a,b\n1,\0\n", 8);
  return {
      {"csv.empty", "an empty file", "", "DataError",
       "FILE: the file is empty; a header line and at least one row are needed"},
      {"csv.only_mark", "a byte order mark and nothing else", "\xEF\xBB\xBF", "DataError",
       "FILE: the file is empty; a header line and at least one row are needed"},
      {"csv.pointer", "a Git LFS pointer in place of the table",
       "version https://git-lfs.github.com/spec/v1\noid sha256:0123456789abcdef\nsize 5481\n", "DataError",
       "FILE: is a Git LFS pointer, not the file itself; run \"git lfs pull\" in its repository or download "
       "the file"},
      {"csv.web_page", "a web page in place of the table", "\n<html><body>Sign in</body></html>\n",
       "DataError",
       "FILE: is a web page, not the file itself; the download went wrong: fetch the file itself"},
      {"csv.gzip", "a packed table", "\x1F\x8B\x08rest", "DataError",
       "FILE: is packed by gzip; unpack it first (gunzip)"},
      {"csv.header_only", "a header without rows", "a,b\n", "DataError",
       "FILE: has a header and no rows; at least one row is needed"},
      {"csv.fewer_fields", "a row with a field too few", "a,b,c\n1,2,3\n4,5\n", "DataError",
       "FILE:3: has 2 fields and the header has 3; give each row one field a column, and quote commas"},
      {"csv.more_fields", "a row with a field too many", "a,b\n1,2\n\"x\ny\",2\n3,4,5\n", "DataError",
       "FILE:5: has 3 fields and the header has 2; give each row one field a column, and quote commas"},
      {"csv.open_quote", "a quote that is never closed", "a,b\n1,\"two\n3,4\n", "DataError",
       "FILE:2: the quote that opens in column 2 is never closed; close it, and write a quote inside quotes "
       "twice"},
      {"csv.after_quote", "text after a closing quote", "a,b\n\"1\"x,2\n", "DataError",
       "FILE:2: text follows the closing quote in column 1; write a quote inside quotes twice"},
      {"csv.bare_quote", "a quote inside a field that does not begin with one", "a,b\n1,5\" disk\n",
       "DataError",
       "FILE:2: a quote stands inside the unquoted field of column 2; quote the field and write the quote "
       "twice"},
      {"csv.nul", "a NUL byte", nul, "DataError",
       "FILE:2: holds a NUL byte; the file is no text, or was saved as UTF-16: save it as UTF-8"},
      {"csv.bare_return", "a carriage return without a line feed", "a,b\r1,2\r", "DataError",
       "FILE:1: a carriage return stands without a line feed; end lines with LF or CRLF"},
      {"csv.broken_utf8", "a byte that is no UTF-8", "a,b\n1,caf\xE9\n", "DataError",
       "FILE:2: is not valid UTF-8 at byte 10 of the file; save it as UTF-8"},
      {"csv.repeated_column", "two columns of one name", "id,x,x,y\n1,2,3,4\n", "DataError",
       "FILE:1: columns 2 and 3 are both called \"x\"; give each column a name of its own"},
      {"csv.unnamed_column", "a column without a name", "a,,c\n1,2,3\n", "DataError",
       "FILE:1: column 2 has no name; give each column a name, or leave the column out"},
      {"csv.large_cell", "a cell above 1 MiB", "a,b\n1," + std::string((size_t{1} << 20) + 1, 'x') + "\n",
       "DataError", "FILE:2: the cell in column 2 has more than 1048576 bytes; a quote may be missing"},
      {"csv.semicolons", "another separator", "a;b;c\n1;2;3\n", "DataError",
       "FILE:1: the header has one column and holds \";\"; separate the fields by commas"},
      {"csv.tabs", "tabs as separators", "a\tb\n1\t2\n", "DataError",
       "FILE:1: the header has one column and holds tabs; separate the fields by commas"},
  };
}

}  // namespace accrue::test
