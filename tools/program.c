/* A tool: its work is a function of libhone.so, which holds all of them (HN_MAIN: hone_run_main for hone-run). */

int HN_MAIN(int argc, char **argv);

int main(int argc, char **argv)
{
    return HN_MAIN(argc, argv);
}
