#include "tools/opcheck/opcheck.h"

int main(int argc, char** argv) {
  return rbee::harness::run_opcheck(argc, argv);
}
