"""Where ordinary code can be broken, and what it reads broken: found in clang's syntax tree of src/ and include/.

A site is a range of a file, what stands there, what the mutant reads, and the text that holds both and asks WEFT_MUTANT which.
Texts are read as latin-1, so that an index into the text is clang's offset in bytes.
"""
import collections
import dataclasses
import pathlib
import re

import clang.cindex
from clang.cindex import CursorKind as kind

FUNCTIONS = {kind.FUNCTION_DECL, kind.CXX_METHOD, kind.CONSTRUCTOR, kind.DESTRUCTOR, kind.CONVERSION_FUNCTION,
             kind.FUNCTION_TEMPLATE}
OTHER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+", "+=": "-=", "-=": "+=", "==": "!=", "!=": "==",
         "&&": "||", "||": "&&"}
# Not broken: our own checks, messages, log lines, hints, and the points that belong to the mutation of protocols.
LEFT_ALONE = {"order", "check", "step", "invariant", "fail", "failf", "log_line", "logs", "cpu_relax", "linger",
              "__builtin_prefetch", "prefetch", "fence_seq_cst", "fprintf", "printf", "fputs", "fputc", "vfprintf", "snprintf"}
LEFT_ALONE_TEXT = re.compile(r'\b(?:order|check|step)<"|\bWEFT_LOG\b|\bprefetch|\bassert\s*\(|\basm\b|\bstatic_assert\b|\binvariant\(')
# Annotations for sanitizers and valgrind do nothing in the build that is tested.
LEFT_ALONE_FILES = re.compile(r"annotate|valgrind|same_sanitizer|base/mutation\.hpp|base/check\.|base/log\.hpp")


@dataclasses.dataclass
class Site:
    kind: str
    file: str  # relative to the root of the project
    line: int
    start: int
    end: int
    function: str
    original: str
    mutated: str
    switched: str  # with {} for the number of the mutant
    around: str = ""  # the whole line that it begins in
    number: int = 0

    def change(self):
        return f"{one_line(self.original)} -> {one_line(self.mutated)}"

    def key(self):
        """Stays the same while other lines change."""
        around = one_line(self.around)
        return f"{self.file} | {self.function} | {self.change()}" + (f" | {around}" if around != one_line(self.original) else "")


def one_line(text):
    text = " ".join(re.sub(r"//[^\n]*", "", text).split())
    return text if len(text) <= 90 else text[:60] + " ... " + text[-25:]


def blanked(text):
    """Comments, strings and characters as spaces of the same length; what is left can be matched by brackets."""
    def blank(match):
        token = match[0]
        return token if token[0].isdigit() else re.sub(r"[^\n]", " ", token)
    return re.sub(r"//[^\n]*|/\*.*?\*/|\d[\w.']*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", blank, text, flags=re.S)


def closing(text, opening):
    """Index of the bracket that closes the one at `opening`, in blanked text."""
    depth = 0
    for i in range(opening, len(text)):
        depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("unbalanced")


class Finder:
    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.texts = {}
        self.sites = {}  # (file, start, end, mutated) -> Site

    # ---- which files

    def text(self, file):
        if file not in self.texts:
            text = (self.root / file).read_text(encoding="latin-1")
            self.texts[file] = text, blanked(text)
        return self.texts[file]

    def ours(self, cursor):
        """The file of a cursor relative to the root, None if it is not one of ours."""
        file = cursor.location.file
        if file is None:
            return None
        name = file.name
        prefix = str(self.root) + "/"
        if not name.startswith((prefix + "src/", prefix + "include/")):
            return None
        name = name[len(prefix):]
        return None if LEFT_ALONE_FILES.search(name) else name

    def walk(self, unit):
        for cursor in unit.cursor.get_children():
            if self.ours(cursor):
                self.declaration(cursor)

    def declaration(self, cursor):
        if cursor.kind in FUNCTIONS:
            if self.ours(cursor):
                self.function(cursor)
            return
        for child in cursor.get_children():
            if child.kind.is_declaration():
                self.declaration(child)

    # ---- a function

    def function(self, cursor):
        bodies = [c for c in cursor.get_children() if c.kind == kind.COMPOUND_STMT]
        if not bodies:
            return
        self.file = self.ours(cursor)
        self.all, self.blank = self.text(self.file)
        head = self.blank[cursor.extent.start.offset:bodies[-1].extent.start.offset]
        if re.search(r"\bconsteval\b|=\s*default", head) or cursor.spelling in LEFT_ALONE:
            return
        parent = cursor.semantic_parent
        scope = re.sub(r"<.*", "", parent.spelling) if parent is not None and not parent.kind.is_translation_unit() else ""
        in_class = parent is not None and parent.kind in (
            kind.CLASS_DECL, kind.STRUCT_DECL, kind.CLASS_TEMPLATE, kind.CLASS_TEMPLATE_PARTIAL_SPECIALIZATION)
        name = re.sub(r"<.*", "", cursor.spelling) if not cursor.spelling.startswith("operator") else cursor.spelling
        self.name = f"{scope}::{name}" if in_class and scope else name
        result = cursor.result_type.kind if cursor.kind not in (kind.CONSTRUCTOR, kind.DESTRUCTOR) else None
        self.result = result
        self.can_leave = cursor.kind == kind.DESTRUCTOR or (
            result == clang.cindex.TypeKind.VOID and cursor.kind != kind.CONSTRUCTOR)
        for body in bodies:
            self.compound(body)

    def add(self, what, start, end, mutated, switched, original=None):
        original = original or self.all[start:end]
        if LEFT_ALONE_TEXT.search(original) or "#" in self.blank[start:end]:
            return
        key = (self.file, start, end, mutated)
        line = self.all.count("\n", 0, start) + 1
        around = self.all[self.all.rfind("\n", 0, start) + 1:].split("\n", 1)[0].strip().rstrip(";")
        self.sites.setdefault(key, Site(what, self.file, line, start, end, self.name, original, mutated, switched, around))

    def flip(self, what, start, end):
        text = self.all[start:end]
        self.add(what, start, end, f"!({text})", f"(static_cast<bool>({self.quoted(text)}) != WEFT_MUTANT({{}}))")

    # ---- statements

    def compound(self, cursor):
        before = None
        for child in cursor.get_children():
            if self.can_leave and child.kind not in (kind.DECL_STMT, kind.RETURN_STMT, kind.NULL_STMT, kind.CASE_STMT,
                                                     kind.DEFAULT_STMT, kind.BREAK_STMT):
                start = child.extent.start.offset
                word = re.match(r"\w*", self.all[start:])[0]
                shown = self.text_of(child).split("\n")[0]
                self.add("early return", start, start + len(word), f"return; {shown}",
                         f"if (WEFT_MUTANT({{}})) return; {word}", shown)
            self.statement(child)
            if before is not None and self.is_action(before) and self.is_action(child):
                self.swap(before, child)
            before = child

    def swap(self, first, second):
        a, b = self.text_of(first), self.text_of(second)
        if "(" not in a + b:
            return  # two assignments: their order says nothing
        start, end = first.extent.start.offset, second.extent.end.offset
        self.add("swap", start, end, f"{b}; {a}",
                 f"if (WEFT_MUTANT({{}})) {{{{ {self.quoted(b)}; {self.quoted(a)}; }}}} else "
                 f"{{{{ {self.quoted(a)}; {self.quoted(b)}; }}}}")

    @staticmethod
    def quoted(text):
        """For str.format."""
        return text.replace("{", "{{").replace("}", "}}")

    def text_of(self, cursor):
        return self.all[cursor.extent.start.offset:cursor.extent.end.offset]

    def is_action(self, cursor):
        """An expression that stands as a statement because it does something."""
        if not cursor.kind.is_expression():
            return False
        text = self.text_of(cursor)
        if LEFT_ALONE_TEXT.search(text) or re.fullmatch(r"\(void\)\s*\w+", text):
            return False
        callee = self.callee(cursor)
        return callee is None or not (callee.spelling in LEFT_ALONE or self.does_nothing(callee))

    @staticmethod
    def callee(cursor):
        while cursor.kind in (kind.UNEXPOSED_EXPR, kind.CSTYLE_CAST_EXPR, kind.PAREN_EXPR):
            children = list(cursor.get_children())
            if not children:
                return None
            cursor = children[-1]
        return cursor.referenced if cursor.kind == kind.CALL_EXPR else None

    @staticmethod
    def does_nothing(callee):
        definition = callee.get_definition()
        if definition is None:
            return False
        bodies = [c for c in definition.get_children() if c.kind == kind.COMPOUND_STMT]
        return bool(bodies) and not list(bodies[0].get_children())

    def statement(self, cursor):
        k = cursor.kind
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        if k == kind.COMPOUND_STMT:
            self.compound(cursor)
        elif k.is_expression():
            if self.is_action(cursor):
                text = self.all[start:end]
                self.add("drop", start, end, "(dropped)", f"if (WEFT_MUTANT({{}})) {{{{}}}} else {self.quoted(text)}")
            self.expression(cursor)
        elif k in (kind.BREAK_STMT, kind.CONTINUE_STMT):
            self.add("drop", start, end, "(dropped)", f"if (WEFT_MUTANT({{}})) {{{{}}}} else {self.all[start:end]}")
        elif k == kind.RETURN_STMT:
            value = list(cursor.get_children())
            if not value:
                if self.can_leave:
                    self.add("drop", start, end, "(dropped)", "if (WEFT_MUTANT({})) {{}} else return")
            else:
                if self.result == clang.cindex.TypeKind.BOOL:
                    self.flip("result", value[0].extent.start.offset, value[0].extent.end.offset)
                self.expression(value[0])
        elif k in (kind.IF_STMT, kind.WHILE_STMT, kind.FOR_STMT, kind.DO_STMT, kind.SWITCH_STMT):
            self.branch(cursor, start)
        elif k == kind.CASE_STMT:
            for child in list(cursor.get_children())[1:]:
                self.statement(child)
        elif k == kind.VAR_DECL:  # of a handler
            pass
        elif k == kind.DECL_STMT:
            if not re.search(r"\b(?:constexpr|constinit|using|static_assert)\b", self.blank[start:end].split("=")[0]):
                for child in cursor.get_children():
                    self.expression(child)
        elif k == kind.CXX_FOR_RANGE_STMT:
            *head, body = cursor.get_children()
            for child in head:
                self.expression(child)
            self.statement(body)
        else:  # default, label, try, catch
            for child in cursor.get_children():
                self.statement(child)

    def branch(self, cursor, start):
        """if, while, do, for, switch: the condition by its brackets, the rest by its children."""
        if not re.match(r"(?:if|while|do|for|switch)\b", self.blank[start:start + 7]):
            return  # it comes from a macro
        children = list(cursor.get_children())
        if cursor.kind == kind.DO_STMT:
            head = self.blank.index("(", self.blank.index("while", children[0].extent.end.offset))
        else:
            head = self.blank.index("(", start)
        tail = closing(self.blank, head)
        constant = re.match(r"if\s+constexpr\b", self.blank[start:head + 1])
        inside = [c for c in children if head < c.extent.start.offset < tail]
        begin, end = self.condition(cursor.kind, head, tail)
        declares = any(c.kind == kind.VAR_DECL for c in inside)
        if cursor.kind != kind.SWITCH_STMT and not constant and not declares and self.all[begin:end].strip():
            self.flip("condition", begin, end)
        for child in children:
            if child in inside:
                if not constant:
                    if child.kind == kind.DECL_STMT:
                        self.statement(child)
                    else:
                        self.expression(child)
            else:
                self.statement(child)

    def condition(self, k, head, tail):
        parts, depth, begin = [], 0, head + 1
        for i in range(head + 1, tail):
            depth += {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}.get(self.blank[i], 0)
            if self.blank[i] == ";" and depth == 0:
                parts.append((begin, i))
                begin = i + 1
        parts.append((begin, tail))
        begin, end = parts[1] if k == kind.FOR_STMT else parts[-1]
        text = self.all[begin:end]
        return begin + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip()))

    # ---- expressions

    def expression(self, cursor):
        k = cursor.kind
        if k == kind.LAMBDA_EXPR:
            outer = self.can_leave, self.result
            self.can_leave, self.result = False, None
            for child in cursor.get_children():
                if child.kind == kind.COMPOUND_STMT:
                    self.compound(child)
            self.can_leave, self.result = outer
            return
        if k == kind.CALL_EXPR and cursor.referenced is not None and cursor.referenced.spelling in LEFT_ALONE:
            return
        start, end = cursor.extent.start.offset, cursor.extent.end.offset
        children = list(cursor.get_children())
        if k in (kind.BINARY_OPERATOR, kind.COMPOUND_ASSIGNMENT_OPERATOR) and len(children) == 2:
            self.operator(children[0], children[1], start, end)
        elif k == kind.CALL_EXPR and cursor.spelling.startswith("operator") and len(children) >= 2:
            self.operator(children[0], children[-1], start, end)
        elif k == kind.UNARY_OPERATOR:
            self.unary(start, end)
        elif k == kind.INTEGER_LITERAL and start < end:
            text = self.all[start:end]
            if re.fullmatch(r"[\w']+", text):
                self.add("off by one", start, end, f"({text} + 1)",
                         f"static_cast<decltype({text})>({text} + WEFT_MUTANT({{}}))")
        elif k == kind.CXX_BOOL_LITERAL_EXPR and self.all[start:end] in ("true", "false"):
            text = self.all[start:end]
            self.add("constant", start, end, "false" if text == "true" else "true", f"({text} != WEFT_MUTANT({{}}))")
        elif k == kind.DECL_REF_EXPR and cursor.referenced is not None:
            if cursor.referenced.kind == kind.ENUM_CONSTANT_DECL and self.ours(cursor.referenced):
                self.enumerator(cursor, start, end)
        elif k == kind.CONDITIONAL_OPERATOR and children:
            self.flip("condition", children[0].extent.start.offset, children[0].extent.end.offset)
        for child in children:
            if child.kind == kind.COMPOUND_STMT:
                self.compound(child)
            elif not self.is_constant(cursor, child):
                self.expression(child)

    def is_constant(self, cursor, child):
        """Template arguments and bounds of arrays are children, too, and evaluated by the compiler."""
        at = child.extent.start.offset
        if cursor.kind in (kind.DECL_REF_EXPR, kind.MEMBER_REF_EXPR):
            return at != cursor.extent.start.offset
        return cursor.kind == kind.VAR_DECL and (at < cursor.location.offset or self.blank[:at].rstrip().endswith("["))

    def operator(self, left, right, start, end):
        op = self.blank[left.extent.end.offset:right.extent.start.offset].strip()
        if op not in OTHER or end != right.extent.end.offset:
            return
        a, b = self.text_of(left), self.text_of(right)
        mutated = f"{a} {OTHER[op]} {b}"
        if op in ("==", "!="):
            if self.already_flipped(start, end):
                return
            switched = f"(({self.quoted(f'{a} {op} {b}')}) != WEFT_MUTANT({{}}))"
        elif op in ("&&", "||"):  # De Morgan: neither side is written twice
            m = "WEFT_MUTANT({})"
            switched = (f"(((static_cast<bool>({self.quoted(a)}) != {m}) {op} (static_cast<bool>({self.quoted(b)}) != {m}))"
                        f" != {m})")
        else:
            switched = f"(WEFT_MUTANT({{}}) ? ({self.quoted(mutated)}) : ({self.quoted(f'{a} {op} {b}')}))"
        self.add("operator", start, end, mutated, switched)

    def already_flipped(self, start, end):
        return (self.file, start, end, f"!({self.all[start:end]})") in self.sites

    def unary(self, start, end):
        text = self.all[start:end]
        if text.startswith("!"):
            if not self.already_flipped(start, end):
                self.flip("condition", start, end)
            return
        for op, other in (("++", "--"), ("--", "++")):
            if text.startswith(op):
                mutated = other + text[2:]
            elif text.endswith(op):
                mutated = text[:-2] + other
            else:
                continue
            self.add("operator", start, end, mutated,
                     f"(WEFT_MUTANT({{}}) ? {self.quoted(mutated)} : {self.quoted(text)})")

    def enumerator(self, cursor, start, end):
        constants = [c.spelling for c in cursor.referenced.semantic_parent.get_children()
                     if c.kind == kind.ENUM_CONSTANT_DECL]
        text = self.all[start:end]
        name = cursor.referenced.spelling
        if len(constants) < 2 or not text.endswith(name):
            return
        other = constants[(constants.index(name) + 1) % len(constants)]
        mutated = text[:-len(name)] + other
        self.add("constant", start, end, mutated, f"(WEFT_MUTANT({{}}) ? {mutated} : {text})")


# ---- the whole project


def units(root):
    """Paths that are parsed together: the sources layer by layer, then every header."""
    root = pathlib.Path(root)
    by_layer = collections.defaultdict(list)
    for path in sorted(root.glob("src/**/*.cpp")):
        by_layer[path.parent.name].append(path)
    yield from by_layer.values()
    headers = sorted([*root.glob("include/**/*.hpp"), *root.glob("src/**/*.hpp")])
    yield [p for p in headers if not LEFT_ALONE_FILES.search(str(p))]


def parse(root, further=()):
    """Translation units, one by one. Files that do not go together, because of equal names, are parsed alone."""
    index = clang.cindex.Index.create()
    arguments = ["-std=c++20", f"-I{root}/src", f"-I{root}/include", "-DWEFT_CHECKED=1", "-ferror-limit=0", "-w", *further]

    def together(paths):
        name = f"{root}/parsed_together.cpp"
        text = "".join(f'#include "{p}"\n' for p in paths)
        return index.parse(name, args=arguments, unsaved_files=[(name, text)])
    for paths in units(root):
        unit = together(paths)
        if next(errors(unit), None) is None:
            yield unit
        else:
            yield from (together([p]) for p in paths)


def errors(unit):
    for d in unit.diagnostics:
        if d.severity >= clang.cindex.Diagnostic.Error:
            yield d


def find(root):
    finder = Finder(root)
    for unit in parse(root):
        for error in errors(unit):
            raise SystemExit(f"mutate: clang does not understand {error.location.file}:{error.location.line}: {error.spelling}")
        finder.walk(unit)
    return sorted(finder.sites.values(), key=lambda s: (s.file, s.start, s.end, s.mutated))
