#!/usr/bin/env python3
"""Tests of weftgz as its users see it: files in, files out, messages and exit codes, beside gzip and pigz.

    weftgz_test.py PROGRAM [unittest's arguments]      e.g. build/dev/apps/weftgz Errors -v

With WEFT_TEST_LONG=1 also a stream of more than 4 GB. Every command has a limit of time, so that a hang is a failure.
"""
import gzip
import os
import pty
import random
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib

PROGRAM = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
LIMIT = 100
LONG = os.environ.get("WEFT_TEST_LONG") == "1"
SANITIZED = "ASAN_OPTIONS" in os.environ


def text_of(path):
    with open(path) as f:
        return f.read()


def words(size, seed=1):
    """Text that compresses about as real text does."""
    r = random.Random(seed)
    vocabulary = ["".join(r.choices("etaoinshrdlucmfw", k=r.randint(2, 9))) for _ in range(3000)]
    return " ".join(r.choices(vocabulary, weights=range(3000, 0, -1), k=size // 5 + 1)).encode()[:size]


KIB, MIB = 1 << 10, 1 << 20
TEXT = words(MIB + 12345)
CORPORA = {
    "empty": b"",
    "one byte": b"x",
    "text": TEXT,
    "random": random.Random(2).randbytes(MIB + 1),
    "zeros": bytes(3 * MIB),
    "a block": TEXT[5:][:MIB],
    "a block and a byte": TEXT[6:][:MIB + 1],
    "a byte less than a block": TEXT[7:][:MIB - 1],
}


def member(data, level=6, strategy=zlib.Z_DEFAULT_STRATEGY, extra=None, name=None, comment=None, crc=False, damage=0,
           length=None):
    """One gzip member as RFC 1952 has it, with any field; `damage` is added to the CRC."""
    c = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
    body = c.compress(data) + c.flush()
    flags = (2 if crc else 0) | (4 if extra is not None else 0) | (8 if name else 0) | (16 if comment else 0)
    head = struct.pack("<BBBBIBB", 0x1f, 0x8b, 8, flags, 1234567890, 0, 3)
    if extra is not None:
        head += struct.pack("<H", len(extra)) + extra
    for text in (name, comment):
        if text:
            head += text + b"\0"
    if crc:
        head += struct.pack("<H", zlib.crc32(head) & 0xffff)
    tail = struct.pack("<II", (zlib.crc32(data) + damage) & 0xffffffff, (len(data) if length is None else length) & 0xffffffff)
    return head + body + tail


def bgzf(data):
    m = member(data, extra=b"BC\x02\x00\x00\x00")
    return m[:16] + struct.pack("<H", len(m) - 1) + m[18:]


def sizes_of_members(packed):
    """The lengths that the headers hold, followed from one to the next."""
    sizes = []
    while sum(sizes) < len(packed):
        at = sum(sizes)
        if packed[at:at + 2] != b"\x1f\x8b" or not packed[at + 3] & 4 or packed[at + 12:at + 16] != b"WG\x04\x00":
            return None
        sizes.append(struct.unpack_from("<I", packed, at + 16)[0])
        if sizes[-1] == 0:
            return None
    return sizes


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="weftgz-test-")
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    def files(self):
        return sorted(os.listdir(self.dir))

    def run_program(self, *args, input=None, program=None, **more):
        if input is None and "stdin" not in more:
            more["stdin"] = subprocess.DEVNULL
        return subprocess.run([program or PROGRAM, *args], input=input, stdout=more.pop("stdout", subprocess.PIPE),
                              stderr=subprocess.PIPE, cwd=self.dir, timeout=LIMIT, **more)

    def ok(self, *args, **more):
        r = self.run_program(*args, **more)
        self.assertEqual((r.returncode, r.stderr), (0, b""), args)
        return r.stdout

    def by(self, program, *args, input=None):
        if not shutil.which(program):
            self.skipTest(f"there is no {program}")
        r = self.run_program(*args, input=input, program=program)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout

    def fails(self, code, *args, says=(), **more):
        r = self.run_program(*args, **more)
        self.assertEqual(r.returncode, code, (args, r.stderr))
        for text in says:
            self.assertIn(text, r.stderr.decode())
        return r


class RoundTrips(Case):
    # req: CC-17
    def test_what_weftgz_makes_is_read_by_gzip_and_pigz(self):
        for name, data in CORPORA.items():
            for how in ([], ["--single"], ["-1", "-p", "1"]):
                with self.subTest(corpus=name, how=how):
                    packed = self.ok("-c", *how, input=data)
                    self.assertTrue(self.by("gzip", "-dc", input=packed) == data)
                    self.assertTrue(self.by("pigz", "-dc", input=packed) == data)
                    self.assertTrue(self.ok("-dc", input=packed) == data)

    # req: CC-17
    def test_what_gzip_and_pigz_make_is_read(self):
        for name, data in CORPORA.items():
            for program, how in (("gzip", ["-c"]), ("gzip", ["-c1"]), ("pigz", ["-c"]), ("pigz", ["-ci"]), ("pigz", ["-c0"])):
                with self.subTest(corpus=name, program=program, how=how):
                    packed = self.by(program, *how, input=data)
                    self.assertTrue(self.ok("-dc", input=packed) == data)

    def test_every_level_and_block_size(self):
        data = CORPORA["text"][:700 * KIB]
        sizes = {}
        for how in [[f"-{n}"] for n in (*range(10), 11)] + [["--fast"], ["--best"], ["-b", "32"], ["-b", "100"],
                                                            ["-b", "20000"], ["--single", "-b", "32", "-9"],
                                                            ["--single", "-i"], ["--single", "-0"], ["--single", "-11"]]:
            with self.subTest(how=how):
                packed = self.ok("-c", *how, input=data)
                sizes[how[0]] = len(packed)
                self.assertTrue(gzip.decompress(packed) == data)
                self.assertTrue(self.ok("-dc", input=packed) == data)
        self.assertGreater(sizes["-0"], len(data))
        self.assertGreater(sizes["-1"], sizes["-6"])
        self.assertGreaterEqual(sizes["-6"], sizes["-9"])
        self.assertEqual((sizes["--fast"], sizes["--best"]), (sizes["-1"], sizes["-9"]))

    # req: CC-17
    def test_levels_are_as_small_as_those_of_pigz(self):
        data = text_of(__file__).encode() * 2 + CORPORA["text"] + CORPORA["random"][:MIB // 4]
        for level in range(1, 10):
            with self.subTest(level=level):
                pigz = len(self.by("pigz", f"-{level}c", input=data))
                for how in ([], ["--single"]):
                    self.assertLessEqual(len(self.ok(f"-{level}c", *how, input=data)), 1.005 * pigz, how)

    def test_each_block_is_a_member_that_says_its_length(self):
        packed = self.ok("-c", "-b", "128", input=CORPORA["text"])
        sizes = sizes_of_members(packed)
        self.assertIsNotNone(sizes)
        self.assertEqual(len(sizes), -(-len(CORPORA["text"]) // (128 * KIB)))
        self.assertEqual(sum(sizes), len(packed))

    def test_single_is_one_member(self):
        packed = self.ok("-c", "--single", "-b", "32", input=CORPORA["text"])
        d = zlib.decompressobj(31)
        self.assertTrue(d.decompress(packed) == CORPORA["text"])
        self.assertTrue(d.eof and d.unused_data == b"")

    def test_the_dictionary_is_carried_in_single_unless_independent(self):
        period = random.Random(7).randbytes(20_000)  # so the second half of a block is found in the first
        carried = self.ok("-c", "--single", "-b", "32", input=period * 16)
        independent = self.ok("-c", "--single", "-i", "-b", "32", input=period * 16)
        self.assertLess(len(carried), 2 * len(period))
        self.assertGreater(len(independent), 8 * len(period))

    # req: CC-17
    def test_members_of_every_kind_are_read(self):
        text, noise = words(100_000, 8), random.Random(9).randbytes(100_000)
        kinds = {
            "stored": member(noise, level=0), "fixed": member(text, strategy=zlib.Z_FIXED), "dynamic": member(text),
            "huffman": member(text, strategy=zlib.Z_HUFFMAN_ONLY), "name": member(text, name=b"a/b"),
            "comment": member(text, comment=b"hello"), "extra": member(text, extra=b"XY\x03\x00abc"),
            "odd extra": member(text, extra=b"abc"), "extra with a wrong length": member(text, extra=b"XY\xff\x00abc"),
            "empty extra": member(text, extra=b""), "crc": member(text, crc=True), "bgzf": bgzf(text[:50_000]),
            "everything": member(text, extra=b"XY\x00\x00", name=b"n", comment=b"c", crc=True), "empty": member(b""),
        }
        for name, packed in kinds.items():
            with self.subTest(kind=name):
                self.assertTrue(self.ok("-dc", input=packed) == gzip.decompress(packed))
        together = b"".join(kinds.values())
        self.assertTrue(self.ok("-dc", input=together) == gzip.decompress(together))

    def test_many_members_and_mixed_ones(self):
        own = self.ok("-c", "-b", "32", input=CORPORA["text"])
        packed = own + b"".join(member(bytes([i & 255]) * i) for i in range(2000)) + own + bgzf(b"") + own
        self.assertTrue(self.ok("-dc", input=packed) == gzip.decompress(packed))

    def test_members_longer_than_any_limit_of_memory_are_streamed(self):
        data = bytes(11 * MIB)
        packed = self.ok("-c1", "-b", "10000", input=data)
        self.assertIsNone(sizes_of_members(packed))
        self.assertTrue(self.ok("-dc", input=packed) == data)

    def test_zeros_behind_the_last_member_are_ignored(self):
        for n in (1, 511, 300_000):
            for packed in (member(b"tape"), self.ok("-c", input=b"tape")):
                self.assertEqual(self.ok("-dc", input=packed + bytes(n)), b"tape")

    @unittest.skipUnless(LONG, "WEFT_TEST_LONG=1 runs it")
    def test_more_than_four_gigabytes(self):
        with open(self.path("big"), "wb") as f:
            f.truncate(4 * (1 << 30) + 12345)
        for how in ([], ["--single"]):
            self.ok("-kf1", *how, "big")
            self.assertIn(str(4 * (1 << 30) + 12345).encode(), self.ok("-l", "big.gz"))
            r = subprocess.run(f"gzip -dc big.gz | cmp - big && {PROGRAM} -dc big.gz | cmp - big", shell=True, cwd=self.dir)
            self.assertEqual(r.returncode, 0)
            self.ok("-t", "big.gz")


class Errors(Case):
    def damaged(self):
        """Damaged files, by what gzip says about them."""
        text = CORPORA["text"]
        own = self.ok("-c", "-b", "64", input=text)
        foreign = member(text)
        for kind, good in (("own", own), ("foreign", foreign)):
            for cut in (1, 2, 5, 11, 15, 19, len(good) // 2, len(good) - 9, len(good) - 8, len(good) - 1):
                yield f"{kind}, first {cut} bytes", good[:cut], "unexpected end of file"
            wrong = bytearray(good)
            wrong[-5] ^= 1
            yield f"{kind}, crc", bytes(wrong), "crc error"
            wrong = bytearray(good)
            wrong[-4] ^= 1
            yield f"{kind}, length", bytes(wrong), "length error"
            wrong = bytearray(good)
            for i in range(300, 400):
                wrong[i] = 0xff
            yield f"{kind}, body", bytes(wrong), "invalid compressed data"
        yield "header's crc", member(text, crc=True)[:10] + b"\0\0\0\0", "header"
        yield "method", b"\x1f\x8b\x07" + foreign[3:], "unknown method 7"
        yield "flags", b"\x1f\x8b\x08\xe0" + foreign[4:], "not supported"
        yield "nothing", b"", "unexpected end of file"
        yield "text", b"Hello, world\n", "not in gzip format"
        yield "too short a size", own[:16] + struct.pack("<I", 20) + own[20:], "invalid compressed data"
        yield "too large a size", own[:16] + struct.pack("<I", 60_000) + own[20:], "invalid compressed data"

    # req: CC-17
    def test_damaged_files_are_named_and_leave_nothing_behind(self):
        for name, packed, says in self.damaged():
            with self.subTest(kind=name):
                self.write("a.gz", packed)
                self.fails(1, "-d", "a.gz", says=("a.gz", says))
                self.assertEqual(self.files(), ["a.gz"])
                self.assertEqual(self.read("a.gz"), packed)
                self.fails(1, "-t", "a.gz", says=("a.gz", says))
                self.fails(1, "-dc", says=("stdin", says), input=packed)

    def test_what_stands_before_the_damage_is_written_to_stdout(self):
        text = CORPORA["text"]
        for packed in (self.ok("-c", "-b", "64", input=text), member(text)):
            r = self.fails(1, "-dc", input=packed[:len(packed) // 2])
            self.assertGreater(len(r.stdout), len(text) // 4)
            self.assertTrue(text.startswith(r.stdout))

    # req: CC-17
    def test_garbage_behind_the_stream_is_a_warning(self):
        for packed in (member(b"good"), self.ok("-c", input=b"good")):
            for garbage in (b"garbage", bytes(100) + b"x", b"\x1fx"):
                self.write("a.gz", packed + garbage)
                self.fails(2, "-dkf", "a.gz", says=("a.gz", "trailing garbage ignored"))
                self.assertEqual(self.read("a"), b"good")
                self.assertEqual(self.fails(2, "-tq", "a.gz").stderr, b"")

    def test_an_existing_target_is_kept(self):
        self.write("a", b"new")
        self.write("a.gz", b"old")
        self.fails(2, "a", says=("a.gz already exists", "not overwritten"))
        self.assertEqual((self.read("a"), self.read("a.gz")), (b"new", b"old"))
        self.ok("-f", "a")
        self.assertEqual((self.files(), gzip.decompress(self.read("a.gz"))), (["a.gz"], b"new"))

    def test_a_target_that_is_to_be_replaced_survives_a_failure(self):
        self.write("a.gz", member(CORPORA["text"])[:-20])
        self.write("a", b"precious")
        self.fails(1, "-df", "a.gz")
        self.assertEqual((self.files(), self.read("a")), (["a", "a.gz"], b"precious"))

    def test_what_cannot_be_worked_on_is_named(self):
        os.mkdir(self.path("d"))
        self.write("x.gz", b"")
        self.write("plain", b"p")
        self.write("linked", b"l")
        os.link(self.path("linked"), self.path("other"))
        os.symlink("plain", self.path("symbolic"))
        os.mkfifo(self.path("fifo"))
        self.fails(1, "absent", says=("absent", "No such file"))
        self.fails(1, "-d", "absent", says=("absent.gz", "No such file"))
        self.fails(2, "d", says=("d is a directory",))
        self.fails(2, "x.gz", says=("x.gz already has .gz suffix",))
        self.fails(2, "-d", "plain", says=("plain", "unknown suffix"))
        self.fails(2, "linked", says=("linked has 1 other link",))
        self.fails(1, "symbolic", says=("symbolic", "link"))
        self.fails(2, "fifo", says=("fifo is not",))
        self.assertEqual(self.files(), ["d", "fifo", "linked", "other", "plain", "symbolic", "x.gz"])

    @unittest.skipIf(os.geteuid() == 0 and not shutil.which("setpriv"), "root reads everything")
    def test_an_unreadable_file_is_named(self):
        self.write("a", b"a")
        os.chmod(self.path("a"), 0)
        os.chmod(self.dir, 0o777)
        if os.geteuid() == 0:
            r = self.run_program("--reuid=65534", "--clear-groups", PROGRAM, "a", program="setpriv")
            if b"setpriv" in r.stderr or r.returncode in (126, 127):
                self.skipTest("cannot become somebody else")
        else:
            r = self.run_program("a")
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"a: Permission denied", r.stderr)

    def test_the_next_file_follows_after_an_error(self):
        self.write("a", b"a")
        self.write("c", b"c")
        self.fails(1, "a", "absent", "c", says=("absent",))
        self.assertEqual(self.files(), ["a.gz", "c.gz"])
        self.fails(1, "-dc", "a.gz", "absent", "c.gz")
        self.assertEqual(self.run_program("-dc", "a.gz", "absent", "c.gz").stdout, b"ac")

    # req: CC-17
    def test_a_full_disk_is_an_error_and_nothing_is_lost(self):
        with open("/dev/full", "wb") as full:
            self.fails(1, "-c", says=("stdout: No space left",), input=CORPORA["random"], stdout=full)
            self.fails(1, "-dc", says=("stdout: No space left",), input=member(b"x"), stdout=full)
        self.write("a", CORPORA["random"])

        def little_room():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (MIB // 2, MIB // 2))
        self.fails(1, "a", says=("a.gz: File too large",), preexec_fn=little_room)
        self.assertEqual(self.files(), ["a"])

    def test_a_closed_pipe_ends_it_as_it_ends_gzip(self):
        self.write("a", CORPORA["random"])
        packed = self.ok("-c", "a")
        for args, data in ((["-c", "a"], None), (["-dc"], packed)):
            read_end, write_end = os.pipe()
            os.close(read_end)
            r = self.run_program(*args, input=data, stdout=write_end, restore_signals=True)
            os.close(write_end)
            self.assertEqual((r.returncode, r.stderr), (-signal.SIGPIPE, b""))

    def test_wrong_command_lines(self):
        for args in (["-Z"], ["--nonsense"], ["-b"], ["-b", "x"], ["-b", "31"], ["-p", "0"], ["-10"], ["-12"], ["--keep=1"],
                     ["-S", "a/b"], ["-S", ""], ["--re=1"]):
            with self.subTest(args=args):
                self.fails(1, *args, says=("--help",))


class Options(Case):
    def test_compressing_replaces_the_file_and_keeps_mode_and_times(self):
        a = self.write("a", CORPORA["text"])
        os.chmod(a, 0o640)
        os.utime(a, ns=(1_111_111_111_222_222_222, 1_234_567_890_333_333_333))
        if os.geteuid() == 0:
            os.chown(a, 12345, 23456)
        before = os.stat(a)

        def same(s):
            return (s.st_mode, s.st_uid, s.st_gid, s.st_mtime_ns) == (before.st_mode, before.st_uid, before.st_gid, before.st_mtime_ns)
        self.ok("a")
        self.assertEqual(self.files(), ["a.gz"])
        self.assertTrue(same(os.stat(self.path("a.gz"))))
        self.ok("-d", "a.gz")
        self.assertEqual(self.files(), ["a"])
        self.assertTrue(same(os.stat(a)))
        self.assertTrue(self.read("a") == CORPORA["text"])

    def test_keep_and_stdout_keep_the_file(self):
        self.write("a", b"hello")
        self.ok("-k", "a")
        self.assertEqual(self.files(), ["a", "a.gz"])
        self.assertEqual(gzip.decompress(self.ok("-c", "a")), b"hello")
        self.assertEqual(self.ok("-dc", "a.gz"), b"hello")
        self.assertEqual(self.files(), ["a", "a.gz"])

    def test_several_files_to_stdout_keep_their_order(self):
        for n in "abc":
            self.write(n, n.encode() * 10)
        self.assertEqual(gzip.decompress(self.ok("-c", "c", "a", "b")), b"c" * 10 + b"a" * 10 + b"b" * 10)

    def test_the_name_and_time_are_stored_as_pigz_stores_them(self):
        a = self.write("a", b"hello")
        os.utime(a, (1_000_000_000, 1_000_000_000))
        self.ok("-k", "a")
        packed = self.read("a.gz")
        self.assertEqual(struct.unpack_from("<I", packed, 4)[0], 1_000_000_000)
        self.assertIn(b"a\0", packed[:30])
        self.by("pigz", "-dkfN", "a.gz")
        self.ok("-kfn", "a")
        packed = self.read("a.gz")
        self.assertEqual((struct.unpack_from("<I", packed, 4)[0], packed[3] & 8), (0, 0))
        self.assertEqual(struct.unpack_from("<I", self.ok("-c", input=b"x"), 4)[0], 0)

    def test_name_restores_name_and_time(self):
        self.write("b.gz", member(b"hello", name=b"dir/../original"))
        self.ok("-dkN", "b.gz")
        self.assertEqual(self.files(), ["b.gz", "original"])
        self.assertEqual(int(os.stat(self.path("original")).st_mtime), 1234567890)
        self.ok("-dk", "b.gz")
        self.assertEqual(self.files(), ["b", "b.gz", "original"])

    def test_a_stored_name_cannot_leave_the_directory(self):
        os.mkdir(self.path("inner"))
        for name in (self.path("outside").encode(), b"../outside", b"..", b"x/", b"b.gz"):
            with self.subTest(name=name):
                self.write("inner/b.gz", member(b"hello", name=name))
                self.run_program("-dkfN", "inner/b.gz")
                self.assertEqual(self.files(), ["inner"])
                self.assertEqual(self.read("inner/b.gz"), member(b"hello", name=name))

    def test_suffixes(self):
        self.write("a", b"hello")
        self.ok("-S", ".xyz", "a")
        self.assertEqual(self.files(), ["a.xyz"])
        self.fails(2, "-d", "a.xyz", says=("unknown suffix",))
        self.ok("-dS.xyz", "a")
        self.assertEqual(self.files(), ["a"])
        for name, plain in (("t.tgz", "t.tar"), ("t.taz", "t.tar"), ("t-gz", "t"), ("t.z", "t"), ("t-z", "t"), ("t_z", "t")):
            self.write(name, member(b"hello"))
            self.ok("-d", name)
            self.assertEqual(self.read(plain), b"hello")
            os.unlink(self.path(plain))
        self.write("b.gz", member(b"hello"))
        self.ok("-d", "b")
        self.assertEqual(self.read("b"), b"hello")

    # req: CC-17
    def test_recursive_goes_through_directories(self):
        expected = {}
        for i in range(60):
            d = f"tree/{i % 3}/{i % 5}"
            os.makedirs(self.path(d), exist_ok=True)
            expected[f"{d}/{i}"] = words(i * 3000, i)
            self.write(f"{d}/{i}", expected[f"{d}/{i}"])
        self.write("tree/already.gz", member(b""))
        os.symlink("0", self.path("tree/link"))
        self.ok("-r", "tree")
        for name, data in expected.items():
            self.assertTrue(gzip.decompress(self.read(name + ".gz")) == data)
            self.assertFalse(os.path.exists(self.path(name)))
        self.ok("-tr", "tree")
        self.ok("-dr", "tree")
        for name, data in expected.items():
            self.assertTrue(self.read(name) == data)
        left = [f for _, _, fs in os.walk(self.path("tree")) for f in fs if f.startswith(".")]
        self.assertEqual(left, [])

    def test_test_says_nothing_and_verbose_says_ok(self):
        self.write("a.gz", member(b"hello"))
        self.assertEqual(self.ok("-t", "a.gz"), b"")
        self.assertIn(b"a.gz:\t OK", self.run_program("-tv", "a.gz").stderr)
        self.assertEqual(self.files(), ["a.gz"])

    # req: CC-17
    def test_list_sums_the_members(self):
        data = CORPORA["text"]
        self.write("own.gz", self.ok("-c", "-b", "64", input=data))
        self.write("foreign.gz", member(data) + member(b"123"))
        self.write("mixed.gz", self.ok("-c", input=data) + member(b"123"))
        for name, size in (("own", len(data)), ("foreign", len(data) + 3), ("mixed", len(data) + 3)):
            head, line = self.ok("-l", name + ".gz").decode().splitlines()
            self.assertEqual(head.split(), ["compressed", "uncompressed", "ratio", "uncompressed_name"])
            fields = line.split()
            self.assertEqual(fields[:2], [str(os.path.getsize(self.path(name + ".gz"))), str(size)])
            self.assertEqual(fields[3], name)
        crc = f"{zlib.crc32(data):08x}"
        self.assertIn(crc, self.ok("-lv", "own.gz").decode())
        self.assertIn(f"{zlib.crc32(data + b'123'):08x}", self.ok("-lv", "mixed.gz").decode())
        lines = self.ok("-l", "own.gz", "foreign.gz").decode().splitlines()
        self.assertIn("(totals)", lines[-1])
        self.assertEqual(lines[-1].split()[1], str(2 * len(data) + 3))
        self.assertIn(str(len(data)), self.ok("-l", input=member(data)).decode())
        self.fails(1, "-l", says=("stdin",), input=member(data)[:-3])

    def test_verbose_says_what_was_done(self):
        self.write("a", bytes(100_000))
        self.assertRegex(self.run_program("-kv", "a").stderr.decode(), r"^a:\t 99\.\d% -- created a\.gz\n$")
        self.assertRegex(self.run_program("-vf", "a").stderr.decode(), r"^a:\t 99\.\d% -- replaced with a\.gz\n$")
        self.assertRegex(self.run_program("-dv", "a.gz").stderr.decode(), r"^a\.gz:\t 99\.\d% -- replaced with a\n$")

    def test_quiet_hides_warnings_and_not_the_exit_code(self):
        self.write("a.gz", b"")
        self.assertEqual(self.fails(2, "-q", "a.gz").stderr, b"")

    def test_force_copies_what_is_not_compressed(self):
        for data in (b"plain text", b"\x1f", b"x", CORPORA["random"])[::2] + (b"\x1fxyz",):
            self.assertEqual(self.ok("-dcf", input=data), data)
        self.fails(1, "-dc", says=("not in gzip format",), input=b"plain text")

    def test_force_compresses_what_is_compressed(self):
        self.write("a.gz", b"hello")
        self.ok("-f", "a.gz")
        self.assertEqual(gzip.decompress(self.read("a.gz.gz")), b"hello")

    def test_options_are_bundled_abbreviated_and_ended(self):
        self.write("-k", b"hello")
        self.ok("-k9fp2", "--", "-k")
        self.assertEqual(self.files(), ["-k", "-k.gz"])
        self.assertEqual(self.ok("--decomp", "--std", "--processes=2", "--", "-k.gz"), b"hello")
        self.write("-", b"dash")
        self.assertEqual(gzip.decompress(self.ok("-c", "--", "-")), b"dash")
        self.assertEqual(gzip.decompress(self.ok("-c", "-", input=b"stdin")), b"stdin")

    def test_the_environment_does_not_change_it(self):
        r = self.run_program("-c", input=b"hello", env={**os.environ, "GZIP": "-d", "PIGZ": "-d"})
        self.assertEqual((r.returncode, gzip.decompress(r.stdout)), (0, b"hello"))

    def test_help_and_version(self):
        self.assertIn(b"usage: weftgz", self.ok("--help"))
        self.assertRegex(self.ok("-V"), rb"^weftgz \d+\.\d+\.\d+\n$")


def until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("in vain: " + what)
        time.sleep(0.005)


class Running(Case):
    # req: CC-17
    def test_a_signal_leaves_the_original_and_nothing_else(self):
        data = random.Random(3).randbytes(4 * MIB) * 8
        self.write("a", data)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for how in (["-k9", "-b", "32", "a"], ["-r", "-p", "1", "."]):
                with self.subTest(number=number, how=how):
                    p = subprocess.Popen([PROGRAM, *how], cwd=self.dir, stderr=subprocess.PIPE)
                    until(lambda: any(f != "a" and os.path.getsize(self.path(f)) > 0 for f in self.files()), "a file is begun")
                    p.send_signal(number)
                    self.assertEqual(p.communicate(timeout=LIMIT)[1], b"")
                    self.assertEqual(p.returncode, -number)
                    self.assertEqual(self.files(), ["a"])
        self.assertTrue(self.read("a") == data)

    def test_a_signal_ends_a_wait_for_input(self):
        p = subprocess.Popen([PROGRAM, "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        caught = f"/proc/{p.pid}/status"
        until(lambda: int(text_of(caught).split("SigCgt:")[1].split()[0], 16) & (1 << (signal.SIGTERM - 1)), "it listens")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(timeout=LIMIT), -signal.SIGTERM)
        p.stdin.close()
        p.stdout.close()

    def test_a_signal_that_was_ignored_stays_ignored(self):
        p = subprocess.Popen([PROGRAM, "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        p.send_signal(signal.SIGHUP)
        self.assertEqual(gzip.decompress(p.communicate(b"hello", timeout=LIMIT)[0]), b"hello")

    def peak(self, *command, stdin):
        """The peak of resident memory in bytes. By time(1), because a child begins with the peak of its parent: Python's."""
        if not shutil.which("time"):
            self.skipTest("there is no time(1)")
        r = subprocess.run([shutil.which("time"), "-f", "%M", "-o", self.path("peak"), *command], stdin=stdin, cwd=self.dir,
                           stdout=subprocess.DEVNULL, timeout=LIMIT)
        self.assertEqual(r.returncode, 0)
        return int(self.read("peak")) * KIB

    def peak_for_zeros(self, size, *args):
        source = subprocess.Popen(["head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE)
        result = self.peak(PROGRAM, *args, stdin=source.stdout)
        source.stdout.close()
        source.wait()
        return result

    # req: CC-1 CC-17
    @unittest.skipIf(SANITIZED, "sanitizers take memory of their own")
    def test_memory_does_not_grow_with_the_input(self):
        for how in (["-1"], ["-1", "--single"]):
            short, long = self.peak_for_zeros(24 * MIB, *how), self.peak_for_zeros(160 * MIB, *how)
            self.assertLess(long, short + 4 * MIB)

    # req: CC-1 CC-17
    @unittest.skipIf(SANITIZED, "sanitizers take memory of their own")
    def test_a_slow_reader_of_the_output_holds_the_reader_of_the_input(self):
        with open("/dev/urandom", "rb") as endless:
            p = subprocess.Popen([PROGRAM, "-1c"], stdin=endless, stdout=subprocess.PIPE)
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)

        def has_read():
            return int(text_of(f"/proc/{p.pid}/io").split()[1])
        seen = []

        def stands_still():
            seen.append(has_read())
            return len(seen) > 100 and seen[-1] > MIB and seen[-1] == seen[-100]
        until(stands_still, "it stops to read")
        self.assertLess(seen[-1], 64 * MIB)

    # req: CC-17
    @unittest.skipIf(SANITIZED, "sanitizers take memory of their own")
    def test_the_peak_of_memory_is_at_most_16_mb_above_pigz(self):
        if not shutil.which("pigz"):
            self.skipTest("there is no pigz")
        for corpus in ("random", "text"):
            self.write("a", CORPORA[corpus] * 12)
            self.write("a.gz", self.ok("-c", "a"))
            for how in (["-cp2", "a"], ["-c9p2", "a"], ["-dcp2", "a.gz"]):
                ours, theirs = (self.peak(program, *how, stdin=subprocess.DEVNULL) for program in (PROGRAM, "pigz"))
                self.assertLess(ours, theirs + 16 * MIB, (corpus, how))

    def on_terminal(self, *args):
        """What the terminal shows on stderr."""
        parent, child = pty.openpty()
        read_end, write_end = os.pipe()
        p = subprocess.Popen([PROGRAM, *args], stdin=read_end, stdout=subprocess.DEVNULL, stderr=child)
        os.close(child)
        os.close(read_end)
        shown = b""
        os.write(write_end, b"x" * 1000)
        if "-q" not in args:
            while b"1.0 kB" not in shown:  # the input stays open until the bar is there
                shown += os.read(parent, 4096)
        os.close(write_end)
        while True:
            try:
                more = os.read(parent, 4096)
            except OSError:
                break
            if not more:
                break
            shown += more
        os.close(parent)
        self.assertEqual(p.wait(timeout=LIMIT), 0)
        return shown

    def test_a_terminal_shows_progress_and_nothing_else_does(self):
        shown = self.on_terminal("-c", "--progress")
        self.assertIn(b"B/s", shown)
        self.assertTrue(shown.endswith(b"\r\x1b[K"), shown)
        self.assertEqual(self.on_terminal("-c", "--progress", "-q"), b"")
        self.assertEqual(self.run_program("-c", "--progress", input=b"x").stderr, b"")

    def test_statistics(self):
        self.assertRegex(self.run_program("-c", "--statistics", input=bytes(10000)).stderr.decode(), r"10\.0 kB in.*\n.*workers: \d+ tasks")


if __name__ == "__main__":
    del sys.argv[1]
    unittest.main()
