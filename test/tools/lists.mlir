// RUN: %tc-opt --list-passes --load-pass-plugin=%S/Inputs/plugin.py | %filecheck %s --check-prefix=PASSES
// RUN: %tc-opt --list-pipelines --load-pass-plugin=%S/Inputs/plugin.py | %filecheck %s --check-prefix=PIPELINES
// RUN: %tc-opt --show-dialects | %filecheck %s --check-prefix=DIALECTS
// RUN: %tc-opt %s --load-pass-plugin=%S/Inputs/plugin.py --pipeline="test-pipeline{times=5}" --mlir-print-ir-after=test-nothing -o %t 2>&1 | %filecheck %s --check-prefix=OPTION
// RUN: %tc-opt %s --load-pass-plugin=%S/Inputs/plugin.py --test-nothing="{times=5}" --mlir-print-ir-after=test-nothing -o %t 2>&1 | %filecheck %s --check-prefix=OPTION

// PASSES: --raise-to-tc
// PASSES: --test-break-constants
// PASSES-NEXT: Breaks a program: multiplies float constants by `factor`.
// PASSES-NEXT: options factor: float = 2.0
// PIPELINES: test-pipeline: does nothing, then upstream's canonicalize
// PIPELINES-NEXT: accepts any function
// PIPELINES-NEXT: targets sm_100a
// PIPELINES-NEXT: options times: int = 3
// DIALECTS: Available Dialects: {{.*}}linalg{{.*}}, tc, {{.*}}
// OPTION: IR Dump After test-nothing (test-nothing{times=5})
func.func @f() {
  return
}
