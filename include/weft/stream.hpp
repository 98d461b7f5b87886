// Streams: tasks connected by channels, and ready-made pieces of them.
//
//   namespace st = weft::stream;
//   auto squares =
//       st::count(0, 100) | st::where([](int i) { return i % 2 == 0; }) | st::map([](int i) { return i * i; });
//   for (int s : squares) …
//
// Each piece can be called in several forms, which differ by their arguments: see stream/stage.hpp. The death of either
// side ends a piece, and an exception travels downstream: see stream/spawn.hpp. docs/streams.md describes each piece.
#pragma once

#include <weft/stream/elements.hpp>
#include <weft/stream/groups.hpp>
#include <weft/stream/parallel.hpp>
#include <weft/stream/rpc.hpp>
#include <weft/stream/several.hpp>
#include <weft/stream/sinks.hpp>
#include <weft/stream/sources.hpp>
#include <weft/stream/spawn.hpp>
#include <weft/stream/stage.hpp>
#include <weft/stream/timing.hpp>
