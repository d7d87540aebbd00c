# SPDX-License-Identifier: BSD-3-Clause
"""Does the generator of wrappers wrap what it should, and refuse what it does not know?"""
import pathlib
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
TOOL = TOP / "migrate/mpi/generate_calls"
TYPES = """
typedef int MPI_Comm, MPI_Group, MPI_Request, MPI_Datatype, MPI_Info, MPI_Op, MPI_Win;
typedef long MPI_Aint, MPI_Count;
typedef struct { int MPI_SOURCE; } MPI_Status;
"""
SEND = ("int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, "
        "MPI_Comm comm);")
RECV = ("int MPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, "
        "MPI_Comm comm, MPI_Status *status);")


def generate(header):
    """(exit status, wrappers, symbols, what it said)"""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "mpi.h").write_text(TYPES + header, encoding="utf-8")
        (folder / "in").write_text("{ @MPI_CALLS@ }", encoding="utf-8")
        done = subprocess.run([str(TOOL), "--calls", folder / "calls.cpp", "--map", folder / "map",
                               "--map-template", folder / "in", "--", f"-I{folder}"],
                              capture_output=True, text=True, check=False)
        read = [(folder / each).read_text(encoding="utf-8") if (folder / each).exists() else ""
                for each in ("calls.cpp", "map")]
        return done.returncode, *read, done.stderr


class Generated(unittest.TestCase):
    def wrappers(self, header):
        code, text, symbols, said = generate(header)
        self.assertEqual(code, 0, said)
        return text, symbols

    def refused(self, header, says):
        code, _, _, said = generate(header)
        self.assertNotEqual(code, 0)
        self.assertIn(says, said)

    def test_message(self):
        text, symbols = self.wrappers(SEND + RECV)
        self.assertIn("return PMPI_Send(buf, count, datatype, dest, tag, comm);", text)
        self.assertIn("PMPI_Send(buf, count, datatype, dest, tag, where.real())", text)
        self.assertIn("traffic::sent(where, dest)", text)
        self.assertIn("inside.sent(where, dest, {count, datatype})", text)
        self.assertIn("with.data(buf, count, datatype)", text)
        self.assertIn("PMPI_Recv(buf, count, datatype, source, tag, where.real(), seen)", text)
        self.assertEqual(symbols.split(), ["{", "MPI_Recv;", "MPI_Send;", "}"])

    def test_large_counts_are_the_same(self):
        text, _ = self.wrappers(SEND.replace("MPI_Send", "MPI_Send_c").replace(
            "int count", "MPI_Count count"))
        self.assertIn("int MPI_Send_c(const void *buf, MPI_Count count,", text)
        self.assertIn("traffic::sent(where, dest)", text)

    def test_first_line_is_for_programs_that_do_not_migrate(self):
        text, _ = self.wrappers(SEND)
        body = text[text.index("\nint MPI_Send("):].splitlines()[2:7]
        self.assertEqual([line.strip() for line in body], [
            "{", "if (layer::is_off()) [[likely]]",
            "return PMPI_Send(buf, count, datatype, dest, tag, comm);",
            "return seen_MPI_Send(buf, count, datatype, dest, tag, comm);", "}"])
        self.assertIn("[[gnu::noinline]] static int seen_MPI_Send(", text)

    def test_what_is_recorded_is_apart(self):
        text, _ = self.wrappers(SEND)
        body = text[text.index("static int seen_MPI_Send("):text.index("\nint MPI_Send(")]
        self.assertIn("if (recorder::is_open()) [[unlikely]]\n"
                      "        return noted_MPI_Send(buf, count, datatype, dest, tag, comm);", body)
        self.assertNotIn("recorder::call", body)
        noted = text[text.index("static int noted_MPI_Send("):text.index("static int seen_")]
        self.assertIn("recorder::call(\"MPI_Send\"", noted)
        self.assertIn("traffic::sent(where, dest)", noted)
        self.assertNotIn("telling", noted)

    def test_persistent_operation_is_made_again(self):
        text, _ = self.wrappers(SEND.replace("MPI_Send", "MPI_Send_init").replace(
            "comm)", "comm, MPI_Request *request)"))
        self.assertIn("persist(*request, [=, datatype = kept_type(datatype)]", text)
        self.assertIn("return PMPI_Send_init(buf, count, datatype, dest, tag, layer::real(comm), "
                      "again);", text)

    def test_what_has_no_handle_is_left_alone(self):
        text, symbols = self.wrappers("int MPI_Win_fence(int assert, MPI_Win win);")
        self.assertNotIn("MPI_Win_fence", text + symbols)

    def test_what_is_written_by_hand_is_only_listed(self):
        text, symbols = self.wrappers("int MPI_Comm_rank(MPI_Comm comm, int *rank);")
        self.assertNotIn("MPI_Comm_rank", text)
        self.assertIn("MPI_Comm_rank;", symbols)

    def test_unknown_constructor(self):
        self.refused("int MPI_Comm_invent(MPI_Comm comm, MPI_Comm *newcomm);",
                     "does not say how MPI_Comm_invent makes a communicator")

    def test_unknown_results(self):
        self.refused("int MPI_Invent(MPI_Comm comm, int numbers[]);",
                     "does not say how long int numbers[]")
        self.refused("int MPI_Invent(MPI_Comm comm, void *buf);",
                     "does not say what MPI_Invent receives")
        self.refused("double MPI_Invent(MPI_Comm comm);", "write it by hand")
        self.refused("int MPI_Invent(int n, MPI_Comm comms[]);", "Write it by hand")

    def test_header_that_is_none(self):
        self.refused("this is not C", "mpi.h")


if __name__ == "__main__":
    unittest.main()
