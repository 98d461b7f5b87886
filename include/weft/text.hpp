// Reading text and records from streams, and writing small pieces to them.
//
//   for (std::string_view line : weft::lines(stream)) …
//
//   weft::buffered_reader in(stream);                        // borrows the stream; from std::move(stream) it owns it
//   weft::buffered_writer out(stream);
//   while (const std::optional<std::string_view> line = in.read_line()) {
//     out.write(answer_to(*line));
//     if (in.buffered().empty()) out.flush();                // one send for all the requests that came together
//   }
//
// The streams are whatever has read_some() or write_some(): TCP and Unix streams, their halves, pipes, fs::reader and
// fs::writer, and classes of your own.
//
// Each operation has two forms: one throws std::system_error, whose message names the operation, the stream and the
// reason, the other takes a std::error_code&. Every operation that may wait is a cancellation point, which is looked at
// first, also if the answer is in the buffer. Readers and writers are for one task at a time.
#pragma once

#include <weft/text/buffered_reader.hpp>
#include <weft/text/buffered_writer.hpp>
#include <weft/text/lines.hpp>
