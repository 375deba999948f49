//! The bill of materials: a CycloneDX document of the packages that the programs contain.
//! <https://cyclonedx.org/docs/1.6/json/>

use super::contents::Release;
use super::dependencies::{Package, Packages};
use anyhow::Result;
use serde_json::{Value, json};

pub fn name(release: &Release) -> String {
    format!("hone-{}-{}.cdx.json", release.version, release.target.name())
}

/// The programs as a whole.
const ROOT: &str = "hone";

pub fn make(release: &Release, packages: &Packages) -> Result<Vec<u8>> {
    let own = |package: &&Package| package.is_own;
    let components: Vec<Value> = packages.values().map(component).collect();
    let of_root: Vec<String> = packages.values().filter(own).map(address).collect();
    let mut dependencies = vec![json!({ "ref": ROOT, "dependsOn": of_root })];
    for package in packages.values() {
        let depends_on: Vec<String> =
            package.depends_on.iter().map(|key| address(&packages[key])).collect();
        dependencies.push(json!({ "ref": address(package), "dependsOn": depends_on }));
    }
    let document = json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": ROOT,
                "name": "hone",
                "version": release.version,
                "licenses": [{ "expression": "Apache-2.0 OR MIT" }],
            },
            "properties": [{ "name": "hone:target", "value": release.target.triple() }],
        },
        "components": components,
        "dependencies": dependencies,
    });
    let mut bytes = serde_json::to_vec_pretty(&document)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn component(package: &Package) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": address(package),
        "name": package.name,
        "version": package.version,
        "licenses": [{ "expression": package.licence }],
    });
    // Our own packages are on no registry.
    if !package.is_own {
        component["purl"] = address(package).into();
    }
    if let Some(sum) = &package.checksum {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

/// A package URL. It is the name within the document too.
fn address(package: &Package) -> String {
    // The `+` of a version stands for a blank in an address.
    format!("pkg:cargo/{}@{}", package.name, package.version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::super::contents;
    use super::super::dependencies;
    use super::*;

    #[test]
    fn every_reference_leads_to_a_component() {
        let (release, _) = contents::tests::sample();
        let mut packages = dependencies::tests::sample();
        packages.get_mut("serde 1.0.0").unwrap().checksum = Some("ab".repeat(32));
        let document: Value = serde_json::from_slice(&make(&release, &packages).unwrap()).unwrap();
        let components = document["components"].as_array().unwrap();
        let mut known: Vec<&Value> = components.iter().map(|one| &one["bom-ref"]).collect();
        known.push(&document["metadata"]["component"]["bom-ref"]);
        let dependencies = document["dependencies"].as_array().unwrap();
        assert_eq!(dependencies.len(), known.len());
        for one in dependencies {
            assert!(known.contains(&&one["ref"]), "{one}");
            for to in one["dependsOn"].as_array().unwrap() {
                assert!(known.contains(&to), "{one}");
            }
        }
        let serde = components.iter().find(|one| one["name"] == "serde").unwrap();
        assert_eq!(serde["purl"], "pkg:cargo/serde@1.0.0");
        assert_eq!(serde["hashes"][0]["content"], "ab".repeat(32));
    }
}
