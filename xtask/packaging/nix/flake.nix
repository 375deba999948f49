# Builds Hone from source: nix run 'github:hone-dev/hone?dir=xtask/packaging/nix'
{
  description = "Code completion that learns from what you accept and reject";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" "x86_64-darwin" ];
      forEach = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      root = ../../..;
      manifest = builtins.fromTOML (builtins.readFile (root + "/Cargo.toml"));
    in
    {
      packages = forEach (pkgs: {
        default = pkgs.rustPlatform.buildRustPackage {
          pname = "hone";
          version = manifest.workspace.package.version;
          src = root;
          cargoLock.lockFile = root + "/Cargo.lock";
          cargoBuildFlags = [ "--package=hone" "--package=learner" "--package=rehearsal" ];
          # The tests fetch models, and a build has no network.
          doCheck = false;
          # A package of Nix serves machines other than the one that builds it.
          env.RUSTFLAGS = "-C debuginfo=0";
          nativeBuildInputs = [ pkgs.cmake pkgs.rustPlatform.bindgenHook ];
          meta = {
            homepage = manifest.workspace.package.repository;
            license = with pkgs.lib.licenses; [ asl20 mit ];
            mainProgram = "hone";
          };
        };
      });
    };
}
