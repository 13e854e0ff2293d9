// SPDX-License-Identifier: Apache-2.0
// Image and token files that are wrong, and what a user is told.
#pragma once

#include "tests/formats/bad_files.h"
#include "tests/formats/gzip_bytes.h"

namespace accrue::test {

/// An IDX header: 00 00, the type, and the sizes; `dimensions` overrides their number.
inline std::string idx_header(int type, const std::vector<uint32_t>& sizes, int dimensions = -1) {
  std::string bytes = {0, 0, static_cast<char>(type),
                       static_cast<char>(dimensions < 0 ? static_cast<int>(sizes.size()) : dimensions)};
  for (const uint32_t size : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift);
  return bytes;
}

inline std::vector<BadFile> bad_idx() {
  const std::string kind = "DataError";
  const std::string ten(size_t{10} * 28 * 28, 'x');
  return {
      {"idx.empty", "an empty file", "", kind,
       "FILE: the file is empty; an IDX file is needed: fetch it again"},
      {"idx.pointer", "a Git LFS pointer", "version https://git-lfs.github.com/spec/v1\n", kind,
       "FILE: is a Git LFS pointer, not the file itself; run \"git lfs pull\" in its repository or download "
       "the file"},
      {"idx.two_bytes", "two bytes", std::string(2, '\0'), kind,
       "FILE: has 2 bytes; the header of this IDX file needs 4: the file is cut: fetch it again"},
      {"idx.magic", "another kind of file", "\x89PNG\r\n", kind,
       "FILE: begins with the bytes 89 50 4E 47; an IDX file begins with 00 00 08 and the number of its "
       "dimensions: the file is damaged or of another kind"},
      {"idx.unknown_type", "a type that IDX does not have", idx_header(7, {1}) + "x", kind,
       "FILE: begins with the bytes 00 00 07 01; an IDX file begins with 00 00 08 and the number of its "
       "dimensions: the file is damaged or of another kind"},
      {"idx.float", "floats", idx_header(0x0D, {1}) + "abcd", kind,
       "FILE: holds values of the type 0x0D (float); unsigned bytes (0x08) are needed: convert it"},
      {"idx.signed_byte", "signed bytes", idx_header(9, {1}) + "x", kind,
       "FILE: holds values of the type 0x09 (signed byte); unsigned bytes (0x08) are needed: convert it"},
      {"idx.no_dimension", "no dimension", idx_header(8, {}) + "x", kind,
       "FILE: has 0 dimensions; 1 to 8 are needed: the file is damaged or of another kind"},
      {"idx.many_dimensions", "255 dimensions", idx_header(8, {1, 1}, 255) + "x", kind,
       "FILE: has 255 dimensions; 1 to 8 are needed: the file is damaged or of another kind"},
      {"idx.header_cut", "a file that ends inside its sizes", idx_header(8, {10, 28}, 3), kind,
       "FILE: has 12 bytes; the header of this IDX file needs 16: the file is cut: fetch it again"},
      {"idx.zero", "a size of 0", idx_header(8, {10, 0, 28}), kind,
       "FILE: the size of dimension 2 is 0; at least 1 is needed: the file is damaged or was never filled"},
      {"idx.overflow", "sizes whose product passes 2^63",
       idx_header(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}) + "x", kind,
       "FILE: the sizes [4294967295, 4294967295, 4294967295] have more values than can be counted; the file "
       "is damaged: fetch it again"},
      {"idx.lying", "60000 images claimed and 10 there", idx_header(8, {60000, 28, 28}) + ten, kind,
       "FILE: has 7856 bytes and its sizes [60000, 28, 28] need 47040016; the file is cut: fetch it again"},
      {"idx.huge", "2^40 bytes claimed", idx_header(8, {1024, 1024, 1024, 1024}) + "x", kind,
       "FILE: has 21 bytes and its sizes [1024, 1024, 1024, 1024] need 1099511627796; the file is cut: fetch "
       "it again"},
      {"idx.rest", "a byte too many", idx_header(8, {2, 2}) + "abcde", kind,
       "FILE: has 17 bytes and its sizes [2, 2] need 16; the bytes behind them belong to nothing: fetch the "
       "file again"},
  };
}

inline std::vector<BadFile> bad_idx_gz() {
  const std::string kind = "DataError";
  const std::string ten(size_t{10} * 28 * 28, 'x');
  const std::string good = gzip_bytes(idx_header(8, {2, 2}) + "abcd");
  std::string wrong_sum = good;
  wrong_sum[wrong_sum.size() - 8] ^= 1;
  std::string wrong_code = good;
  wrong_code[2] = 7;
  return {
      {"idx_gz.lying", "60000 images claimed and 10 there", gzip_bytes(idx_header(8, {60000, 28, 28}) + ten),
       kind,
       "FILE: has 7856 bytes and its sizes [60000, 28, 28] need 47040016; the file is cut: fetch it again"},
      {"idx_gz.huge", "2^40 bytes claimed", gzip_bytes(idx_header(8, {1024, 1024, 1024, 1024}) + "x"), kind,
       "FILE: has 21 bytes and its sizes [1024, 1024, 1024, 1024] need 1099511627796; the file is cut: fetch "
       "it again"},
      {"idx_gz.bomb", "4 bytes claimed and 64 MiB packed", gzip_bytes(idx_header(8, {2, 2}), size_t{1} << 26),
       kind,
       "FILE: has at least 17 bytes and its sizes [2, 2] need 16; the bytes behind them belong to nothing: "
       "fetch the file again"},
      {"idx_gz.overflow", "sizes whose product passes 2^63",
       gzip_bytes(idx_header(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF})), kind,
       "FILE: the sizes [4294967295, 4294967295, 4294967295] have more values than can be counted; the file "
       "is damaged: fetch it again"},
      {"idx_gz.empty", "nothing packed", gzip_bytes(""), kind,
       "FILE: the file is empty; an IDX file is needed: fetch it again"},
      {"idx_gz.int", "ints", gzip_bytes(idx_header(0x0C, {1}) + "abcd"), kind,
       "FILE: holds values of the type 0x0C (int); unsigned bytes (0x08) are needed: convert it"},
      {"idx_gz.twice", "packed twice", gzip_bytes(good), kind,
       "FILE: is packed by gzip; unpack it first (gunzip)"},
      {"idx_gz.page", "a packed web page", gzip_bytes("<html></html>"), kind,
       "FILE: is a web page, not the file itself; the download went wrong: fetch the file itself"},
      {"idx_gz.magic_only", "two bytes of gzip", good.substr(0, 2), kind,
       "FILE: its gzip data go on behind its 2 bytes, which hold 0 bytes of content; the file is cut: fetch "
       "it again"},
      {"idx_gz.cut", "the last byte missing", good.substr(0, good.size() - 1), kind,
       "FILE: its gzip data go on behind its " + std::to_string(good.size() - 1) +
           " bytes, which hold 16 bytes of content; the file is cut: fetch it again"},
      {"idx_gz.checksum", "a wrong checksum", wrong_sum, kind,
       "FILE: its gzip data are damaged near byte " + std::to_string(good.size() - 4) + " of " +
           std::to_string(good.size()) + "; fetch the file again"},
      {"idx_gz.method", "an unknown method", wrong_code, kind,
       "FILE: its gzip data are damaged near byte 4 of " + std::to_string(good.size()) +
           "; fetch the file again"},
      {"idx_gz.rest", "text behind the packed data", good + "hello", kind,
       "FILE: behind byte " + std::to_string(good.size()) + " of its " + std::to_string(good.size() + 5) +
           " follows something that is not gzip; fetch the file or pack it again"},
  };
}

/// A row of CIFAR-10 (one label) or CIFAR-100 (two) whose pixels are all `pixel`.
inline std::string cifar_row(const std::string& labels, char pixel = 'p') {
  return labels + std::string(3072, pixel);
}

/// Read as CifarKind::automatic.
inline std::vector<BadFile> bad_cifar() {
  const std::string kind = "DataError";
  const std::string row = cifar_row(std::string(1, '\x03'));
  const std::string fine_row = cifar_row("\x13\x63");
  std::string both;
  for (int i = 0; i < 3074; ++i) both += row;
  return {
      {"cifar.empty", "an empty file", "", kind,
       "FILE: the file is empty; a CIFAR binary file is needed: fetch it again"},
      {"cifar.page", "a web page", "<!DOCTYPE html>\n", kind,
       "FILE: is a web page, not the file itself; the download went wrong: fetch the file itself"},
      {"cifar.rest", "a byte behind two rows", row + row + "x", kind,
       "FILE: has 6147 bytes; rows of CIFAR-10 (3073) leave 1 over and rows of CIFAR-100 (3074) leave 3073: "
       "the file is cut or of another kind: fetch it again"},
      {"cifar.cut", "half a row", row.substr(0, 1536), kind,
       "FILE: has 1536 bytes; rows of CIFAR-10 (3073) leave 1536 over and rows of CIFAR-100 (3074) leave "
       "1536: the file is cut or of another kind: fetch it again"},
      {"cifar.label", "a label of 10", row + cifar_row("\x0A"), kind,
       "FILE: row 1 (from 0): the label is 10; CIFAR-10 allows 0 to 9: the file is damaged or of another "
       "kind"},
      {"cifar.fine_label", "a fine label of 100", fine_row + cifar_row("\x13\x64"), kind,
       "FILE: row 1 (from 0): the fine label is 100; CIFAR-100 allows 0 to 99: the file is damaged or of "
       "another kind"},
      {"cifar.coarse_label", "a coarse label of 20", cifar_row("\x14\x63"), kind,
       "FILE: row 0 (from 0): the coarse label is 20; CIFAR-100 allows 0 to 19: the file is damaged or of "
       "another kind"},
      {"cifar.both", "a length that fits both", both, kind,
       "FILE: has 9446402 bytes, whole rows of CIFAR-10 (3073) and of CIFAR-100 (3074); say which of the two "
       "it is"},
      {"cifar.gz_label", "a packed file with a label of 255", gzip_bytes(cifar_row("\xFF")), kind,
       "FILE: row 0 (from 0): the label is 255; CIFAR-10 allows 0 to 9: the file is damaged or of another "
       "kind"},
      {"cifar.gz_rest", "a packed file with a byte left over", gzip_bytes(row + "x" + row), kind,
       "FILE: has 6147 bytes; rows of CIFAR-10 (3073) leave 1 over and rows of CIFAR-100 (3074) leave 3073: "
       "the file is cut or of another kind: fetch it again"},
  };
}

/// Little-endian numbers of `width` bytes.
inline std::string numbers_bytes(const std::vector<uint32_t>& numbers, size_t width) {
  std::string bytes;
  for (const uint32_t number : numbers)
    for (size_t byte = 0; byte < width; ++byte) bytes += static_cast<char>(number >> (8 * byte));
  return bytes;
}

inline std::string token_header(uint32_t magic, uint32_t version, uint32_t count) {
  return numbers_bytes({magic, version, count}, 4) + std::string(1012, '\0');
}

/// Read with TokenType::automatic and a vocabulary of 100.
inline std::vector<BadFile> bad_token_files() {
  const std::string kind = "DataError";
  const std::string three = numbers_bytes({1, 2, 3}, 2);
  std::vector<uint32_t> many(10000, 99);
  many[9001] = 100;
  return {
      {"tokens.empty", "an empty file", "", kind,
       "FILE: holds no token; a shard needs at least one: write it again"},
      {"tokens.pointer", "a Git LFS pointer", "version https://git-lfs.github.com/spec/v1\n", kind,
       "FILE: is a Git LFS pointer, not the file itself; run \"git lfs pull\" in its repository or download "
       "the file"},
      {"tokens.gzip", "a packed file", gzip_bytes(three), kind,
       "FILE: is packed by gzip; unpack it first (gunzip)"},
      {"tokens.numpy", "a NumPy file", "\x93NUMPY\x01\x00", kind,
       "FILE: is a NumPy .npy file; bare ids are needed: write them by tofile()"},
      {"tokens.half", "half a token", three + "x", kind,
       "FILE: its ids take 7 bytes, no multiple of 2 (uint16); the file is cut or its ids are of another "
       "type"},
      {"tokens.header_cut", "a file that ends inside its header", token_header(20240520, 1, 3).substr(0, 600),
       kind,
       "FILE: begins as a token shard with a header, which needs 1024 bytes, and has 600; the file is cut: "
       "fetch it again"},
      {"tokens.version", "an unknown version", token_header(20240520, 2, 3) + three, kind,
       "FILE: its header (magic 20240520) is of version 2; version 1 is needed: write the shard again"},
      {"tokens.count", "a header that claims more", token_header(20240520, 1, 4) + three, kind,
       "FILE: its header claims 4 tokens and 3 are there; the file is cut or damaged: fetch it again"},
      {"tokens.huge_count", "a header that claims 2^31 - 1",
       token_header(20240801, 7, 0x7FFFFFFF) + numbers_bytes({1}, 4), kind,
       "FILE: its header claims 2147483647 tokens and 1 are there; the file is cut or damaged: fetch it "
       "again"},
      {"tokens.negative_count", "a negative count", token_header(20240520, 1, 0xFFFFFFFF) + three, kind,
       "FILE: its header claims -1 tokens and 3 are there; the file is cut or damaged: fetch it again"},
      {"tokens.header_only", "a header without tokens", token_header(20240520, 1, 0), kind,
       "FILE: holds no token; a shard needs at least one: write it again"},
      {"tokens.header_half", "half a token behind a header",
       token_header(20240801, 7, 1) + std::string(6, '\0'), kind,
       "FILE: its ids take 6 bytes, no multiple of 4 (uint32); the file is cut or its ids are of another "
       "type"},
      {"tokens.id", "an id outside the vocabulary", numbers_bytes(many, 2), kind,
       "FILE: token 9001 (from 0) is 100 as uint16; the vocabulary has 100 ids from 0: use the tokenizer of "
       "the model, and the type that the ids were written in"},
      {"tokens.id_32", "an id of 2^32 - 1", token_header(20240801, 7, 2) + numbers_bytes({7, 0xFFFFFFFF}, 4),
       kind,
       "FILE: token 1 (from 0) is 4294967295 as uint32; the vocabulary has 100 ids from 0: use the tokenizer "
       "of the model, and the type that the ids were written in"},
  };
}

/// Read with a vocabulary of 100, a context of 6 and a max_length of 8.
inline std::vector<BadFile> bad_token_rows() {
  const std::string kind = "DataError";
  const std::string good = "{\"ids\": [1, 2, 3]}\n";
  std::string many;
  std::string many_text;
  for (int line = 1; line <= 25; ++line) {
    many += "{\"ids\": [" + std::to_string(line + 99) + "]}\n";
    if (line <= 20)
      many_text += "FILE:" + std::to_string(line) + ": ids[0] is " + std::to_string(line + 99) +
                   "; a whole number from 0 to 99 is needed\n";
  }
  return {
      {"rows.empty", "an empty file", "", kind,
       "FILE: holds no row; a file of JSON lines needs at least one"},
      {"rows.blank", "blank lines only", "\n \r\n\n", kind,
       "FILE: holds no row; a file of JSON lines needs at least one"},
      {"rows.gzip", "a packed file", gzip_bytes(good), kind,
       "FILE: is packed by gzip; unpack it first (gunzip)"},
      {"rows.cut", "a last line that is cut", good + good + "{\"ids\": [1, 2", kind,
       "FILE:3:14: is not valid JSON (the line ends too early); correct or remove the line"},
      {"rows.broken", "broken JSON after letters of several bytes",
       good + "{\"t\": \"\xC3\xA9\xE2\x82\xAC\", \"ids\": [1 2]}\n", kind,
       "FILE:2:23: is not valid JSON; correct or remove the line"},
      {"rows.mark", "a second byte order mark", "\xEF\xBB\xBF" + good + "\xEF\xBB\xBF" + good, kind,
       "FILE:2:1: a byte order mark opens the line; only the first line of a file may have one: remove it"},
      {"rows.surrogates", "lone surrogates and broken UTF-8, each in a line, and a NUL as an escape",
       "{\"t\": \"a\\ud83d\", \"ids\": [1]}\n{\"t\": \"\\udc00\", \"ids\": [1]}\n{\"t\": \"\xE6\", \"ids\": "
       "[1]}\n{\"t\": \"x\xC0\x80\", \"ids\": [1]}\n{\"t\": \"\\u0000\", \"ids\": [1]}\n",
       kind,
       "FILE:1:15: is not valid JSON (a \\u escape is half of a surrogate pair); correct or remove the line\n"
       "FILE:2:13: is not valid JSON (a \\u escape is half of a surrogate pair); correct or remove the line\n"
       "FILE:3:8: is not valid UTF-8 (byte 0xE6); save the file as UTF-8\n"
       "FILE:4:9: is not valid UTF-8 (byte 0xC0); save the file as UTF-8"},
      {"rows.repeated_key", "a key twice", "{\"ids\": [1], \"ids\": [2]}\n", kind,
       "FILE:1: the key \"ids\" stands twice in one object; keep one"},
      {"rows.deep", "nested beyond reason", "{\"x\": " + std::string(1000, '[') + "\n", kind,
       "FILE:1: is nested deeper than 64 levels; the file is damaged or of another kind"},
      {"rows.number_range", "a number beyond every type", "{\"ids\": [1e999]}\n", kind,
       "FILE:1: holds a number that is too large for JSON; the file is damaged or of another kind"},
      {"rows.no_object", "a line that is a list", good + "[1, 2]\n", kind,
       "FILE:2: is a list; each line needs one JSON object"},
      {"rows.no_ids", "no ids", "{\"tokens\": [1], \"text\": 3}\n{}\n", kind,
       "FILE:1: there is no \"ids\" or \"input_ids\"; the keys are: tokens, text\n"
       "FILE:2: there is no \"ids\" or \"input_ids\"; the keys are: none"},
      {"rows.two_ids", "ids and input_ids", "{\"ids\": [1], \"input_ids\": [1]}\n", kind,
       "FILE:1: has both \"ids\" and \"input_ids\"; keep one"},
      {"rows.list", "ids that are no list", "{\"ids\": \"1 2\"}\n{\"ids\": null}\n", kind,
       "FILE:1: \"ids\" is \"1 2\"; a list of whole numbers is needed\n"
       "FILE:2: \"ids\" is null; a list of whole numbers is needed"},
      {"rows.numbers", "ids that are no whole numbers of the vocabulary",
       "{\"ids\": [1, 2.0]}\n{\"ids\": [\"1\"]}\n{\"ids\": [true]}\n{\"ids\": [[1]]}\n{\"ids\": [-1]}\n"
       "{\"input_ids\": [4294967297]}\n{\"ids\": [18446744073709551615]}\n",
       kind,
       "FILE:1: ids[1] is 2.0; a whole number from 0 to 99 is needed\n"
       "FILE:2: ids[0] is \"1\"; a whole number from 0 to 99 is needed\n"
       "FILE:3: ids[0] is true; a whole number from 0 to 99 is needed\n"
       "FILE:4: ids[0] is a list; a whole number from 0 to 99 is needed\n"
       "FILE:5: ids[0] is -1; a whole number from 0 to 99 is needed\n"
       "FILE:6: input_ids[0] is 4294967297; a whole number from 0 to 99 is needed\n"
       "FILE:7: ids[0] is 18446744073709551615; a whole number from 0 to 99 is needed"},
      {"rows.labels", "labels that are neither ids nor -100",
       "{\"ids\": [1], \"labels\": [-1]}\n{\"ids\": [1], \"labels\": [100]}\n{\"ids\": [1], \"labels\": "
       "{}}\n",
       kind,
       "FILE:1: labels[0] is -1; a whole number from 0 to 99 (or -100) is needed\n"
       "FILE:2: labels[0] is 100; a whole number from 0 to 99 (or -100) is needed\n"
       "FILE:3: \"labels\" is an object; a list of whole numbers is needed"},
      {"rows.unequal", "lists of unequal lengths",
       "{\"ids\": [1, 2], \"labels\": [1]}\n{\"ids\": [1], \"labels\": [1], \"attention_mask\": [1, 1]}\n",
       kind,
       "FILE:1: \"labels\" has 1 numbers and \"ids\" has 2; both need the same length\n"
       "FILE:2: \"attention_mask\" has 2 numbers and \"ids\" has 1; both need the same length"},
      {"rows.some_labels", "labels in some rows only", good + "\n{\"ids\": [1], \"labels\": [1]}\n", kind,
       "FILE:3: has labels and line 1 has none; give labels in every row or in none"},
      {"rows.mask", "masks that are wrong",
       "{\"ids\": [1, 2], \"attention_mask\": [1, 2]}\n{\"ids\": [1], \"attention_mask\": [0]}\n", kind,
       "FILE:1: attention_mask[1] is 2; a whole number from 0 to 1 is needed\n"
       "FILE:2: the attention_mask leaves out every token; a row needs at least one: remove the line"},
      {"rows.no_token", "a row without tokens", good + "{\"ids\": []}\n", kind,
       "FILE:2: \"ids\" is empty; a row needs at least one token: remove the line"},
      {"rows.context", "a row longer than the context", "{\"ids\": [1, 2, 3, 4, 5, 6, 7]}\n", kind,
       "FILE:1: has 7 tokens and the model's context is 6; shorten the row or cut rows by max_length"},
      {"rows.cut_targets", "a row whose targets are all cut",
       "{\"ids\": [1, 2, 3, 4, 5, 6, 7, 8, 9], \"labels\": [1, -100, -100, -100, -100, -100, -100, -100, "
       "9]}\n",
       kind,
       "FILE:1: has 9 tokens, and no label that counts is left of them after the cut at max_length 8; raise "
       "max_length or remove the row"},
      {"rows.many", "25 bad lines", many, kind, many_text + "FILE: and 5 more"},
  };
}

}  // namespace accrue::test
