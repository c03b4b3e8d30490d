/** What a release is made for, and the runtime each target gets. */
export type Target = {
  /** As it stands in a file's name and in `--version`. */
  readonly name: string;
  /** The package of Bun that holds the runtime, and its integrity as the registry gives it. */
  readonly runtime: { readonly package: string; readonly integrity: string };
  readonly machine: "x86-64" | "aarch64";
  readonly libc: "glibc" | "musl" | "none";
  /** Architecture of the Debian and RPM packages made of it; null where there are none. */
  readonly packages: { readonly deb: string; readonly rpm: string } | null;
};

/** Version of Bun that the integrities below belong to; `runtimes.ts` refuses another one. */
export const BUN_VERSION = "1.4.5";

const sha512 = (digest: string) => `sha512-${digest}`;

/** The first one is the default for login nodes: the plain x64 runtime needs AVX2, the baseline one SSE4.2. */
export const TARGETS: readonly Target[] = [
  {
    name: "linux-x64-baseline",
    runtime: {
      package: "@oven/bun-linux-x64-baseline",
      integrity: sha512(
        "s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA==",
      ),
    },
    machine: "x86-64",
    libc: "glibc",
    packages: { deb: "amd64", rpm: "x86_64" },
  },
  {
    name: "linux-x64",
    runtime: {
      package: "@oven/bun-linux-x64",
      integrity: sha512(
        "IWX9BELoGHAUtMonkeSaNaZwXzRk+oDw6Mk+HBFXd3KHYIBNBsIGRupMZPcgNoDbJpLu6gAJjIoIVPZtt1aJ1g==",
      ),
    },
    machine: "x86-64",
    libc: "glibc",
    packages: null,
  },
  {
    name: "linux-arm64",
    runtime: {
      package: "@oven/bun-linux-aarch64",
      integrity: sha512(
        "4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==",
      ),
    },
    machine: "aarch64",
    libc: "glibc",
    packages: { deb: "arm64", rpm: "aarch64" },
  },
  {
    name: "linux-x64-musl",
    runtime: {
      package: "@oven/bun-linux-x64-musl",
      integrity: sha512(
        "10QoW/YfTgnURaGEaHpJCiXjLI2e5iTtfVDaA5JKcyUzaa1cq6cVUY9/Uq5XkYzvtRjHLRe9Oj/lTDIQcxy8HQ==",
      ),
    },
    machine: "x86-64",
    libc: "musl",
    packages: null,
  },
  {
    name: "linux-arm64-musl",
    runtime: {
      package: "@oven/bun-linux-aarch64-musl",
      integrity: sha512(
        "XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg==",
      ),
    },
    machine: "aarch64",
    libc: "musl",
    packages: null,
  },
  {
    name: "darwin-arm64",
    runtime: {
      package: "@oven/bun-darwin-aarch64",
      integrity: sha512(
        "4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==",
      ),
    },
    machine: "aarch64",
    libc: "none",
    packages: null,
  },
];

/** The targets of these names, in the table's order; throws on a name that is none. */
export function targetsOf(names: readonly string[]): readonly Target[] {
  const unknown = names.filter((name) => !TARGETS.some((target) => target.name === name));
  if (unknown.length > 0)
    throw new Error(
      `no target ${unknown.join(", ")}; there are ${TARGETS.map(({ name }) => name).join(", ")}`,
    );
  return TARGETS.filter(({ name }) => names.includes(name));
}
