//! `datapackage.json`: a Frictionless Tabular Data Package, which describes the type, the unit and the meaning of each
//! column of each CSV file to other programs.

use std::path::Path;

use serde_json::{Value, json};

use super::error::ReportError;
use super::folder::{LEFT_OUT, PACKAGE, RUNS, SUMMARY};
use super::json;
use super::schema::{Better, Data, NamedColumn, SampleFile, Schema, VILLAS};

/// The package of a run, made table by table.
#[derive(Debug)]
pub struct DataPackage<'a> {
    run: &'a Path,
    resources: Vec<Value>,
}

impl<'a> DataPackage<'a> {
    /// That of a run without tables.
    pub fn of(run: &'a Path) -> Self {
        DataPackage {
            run,
            resources: Vec::new(),
        }
    }

    /// Describes a CSV file of the run, if it is there.
    pub fn add(&mut self, path: &str, meaning: &str, columns: &[NamedColumn]) {
        if self.run.join(path).is_file() {
            let name = name_of(path, self.resources.len());
            self.resources.push(resource(&name, path, meaning, columns));
        }
    }

    /// The same of a file of samples, in the folder of a point.
    pub fn add_samples(&mut self, point: &str, file: &SampleFile) {
        let columns = file.columns.iter();
        let columns: Vec<NamedColumn> = columns.map(|&it| (it.name.into(), it)).collect();
        self.add(&format!("{point}/{}", file.name), file.meaning, &columns);
    }

    /// Writes it in one step. `created` is a moment in RFC 3339.
    pub fn write(self, schema: &Schema, created: &str) -> Result<(), ReportError> {
        let package = json!({
            "profile": "tabular-data-package",
            "name": format!("hcabench-{}", schema.benchmark),
            "title": format!("Results of hcabench: {}", schema.title),
            "created": created,
            "resources": self.resources,
        });
        json::write(&self.run.join(PACKAGE), &package)
    }
}

/// Writes the package of a run of points, with a resource for each CSV file that is there. `points` are the names of the
/// points' folders.
pub fn write(
    run: &Path,
    schema: &Schema,
    created: &str,
    points: &[&str],
) -> Result<(), ReportError> {
    let mut package = DataPackage::of(run);
    package.add(SUMMARY, "a row a point", &schema.summary());
    package.add(RUNS, "a row for each point and round", &schema.runs());
    package.add(
        LEFT_OUT,
        "points that were left out, with the reason",
        &schema.left_out(),
    );
    for point in points {
        for file in schema.samples {
            package.add_samples(point, file);
        }
    }
    package.write(schema, created)
}

/// A name as the format allows it, made distinct by the number where small letters are not enough.
fn name_of(path: &str, number: usize) -> String {
    let stem = path.strip_suffix(".csv").unwrap_or(path);
    let plain = stem
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._/".contains(&byte));
    if plain {
        return stem.to_owned();
    }
    let allowed = |character: char| match character.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9' | '-' | '.' | '_' | '/') => letter,
        _ => '-',
    };
    format!("{}-{number}", stem.chars().map(allowed).collect::<String>())
}

fn resource(name: &str, path: &str, meaning: &str, columns: &[NamedColumn]) -> Value {
    let mut resource = json!({
        "name": name,
        "path": path,
        "description": meaning,
        "format": "csv",
        "encoding": "utf-8",
    });
    if path.ends_with(VILLAS) {
        // Rows have a cell for each value: as many as the settings state, not as the columns.
        resource["profile"] = "data-resource".into();
        resource["mediatype"] = "text/tab-separated-values".into();
        resource["dialect"] = json!({ "delimiter": "\t" });
    } else {
        resource["profile"] = "tabular-data-resource".into();
        resource["mediatype"] = "text/csv".into();
        resource["schema"] = json!({
            "fields": columns.iter().map(field).collect::<Vec<_>>(),
            "missingValues": [""],
        });
    }
    resource
}

fn field((name, column): &NamedColumn) -> Value {
    let kind = match column.data {
        Data::Text => "string",
        Data::Whole => "integer",
        Data::Number(_) => "number",
        Data::Flag => "boolean",
        Data::Moment => "datetime",
    };
    let bound = match name.as_ref() {
        name if name == column.name => "",
        name if name == column.bounds()[0] => ": lower bound of its median over rounds",
        _ => ": upper bound of its median over rounds",
    };
    let mut field = json!({
        "name": name,
        "title": column.title,
        "type": kind,
        "description": format!("{}{bound}", column.meaning),
        "hcabench:kind": column.kind,
    });
    if !column.unit().is_empty() {
        field["unit"] = column.unit().into();
    }
    if column.better != Better::Neither {
        field["hcabench:better"] = json!(column.better);
    }
    field
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::results::schema::hca;

    #[test]
    fn each_csv_file_that_is_there_has_a_resource_with_its_columns() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path();
        for point in ["rc-8", "UC-8", "uc-8"] {
            fs::create_dir(run.join(point)).unwrap();
            fs::write(run.join(point).join(hca::MESSAGES.name), "").unwrap();
        }
        fs::write(run.join(SUMMARY), "").unwrap();
        let points = ["rc-8", "UC-8", "uc-8", "not-measured"];
        write(run, &hca::SCHEMA, "2026-01-02T03:04:05Z", &points).unwrap();
        let text = fs::read_to_string(run.join(PACKAGE)).unwrap();
        let package: Value = serde_json::from_str(&text).unwrap();
        let resources = package["resources"].as_array().unwrap();
        for (resource, (path, name)) in resources.iter().zip([
            ("summary.csv", "summary"),
            ("rc-8/messages.csv", "rc-8/messages"),
            ("UC-8/messages.csv", "uc-8/messages-2"),
            ("uc-8/messages.csv", "uc-8/messages"),
        ]) {
            assert_eq!(resource["path"], json!(path));
            assert_eq!(resource["name"], json!(name));
        }
        assert_eq!(resources.len(), 4);
        let fields = resources[0]["schema"]["fields"].as_array().unwrap();
        assert_eq!(fields.len(), hca::SCHEMA.summary().len());
        let is_low = |field: &&Value| field["name"] == "latency_p50_low_ns";
        let low = fields.iter().find(is_low).unwrap();
        assert_eq!([&low["type"], &low["unit"]], ["number", "ns"]);
        assert_eq!(low["hcabench:better"], "lower");
        assert!(low["description"].as_str().unwrap().contains("lower bound"));
    }

    #[test]
    fn files_of_villasnode_have_no_schema_since_each_value_is_a_cell() {
        let of = |path: &str| resource("a", path, "b", &[]);
        assert_eq!(of("p/in.villas").get("schema"), None);
        assert!(of("p/in.csv")["schema"]["fields"].is_array());
    }
}
